#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/group_engine.hpp"
#include "core/engine/procedure.hpp"

namespace ringlet {

/// Drives a procedure to its end from the completions of its collectives, on the loop. Its first collective has been started when this
/// returns. `completion` runs once, from the loop, with the first failure if there was one, when nothing is under way any more; the
/// procedure has been let go of then. `loop` is the groups'; they live until the completion has run.
///
/// Until then nothing else may be started on this stream: other ranks run the procedure's collectives one behind the other. `timeout` is of
/// each collective; unset: the groups'.
void run_procedure(EventLoop& loop, std::shared_ptr<Procedure> procedure, std::vector<GroupEngine*> groups, std::uint16_t stream,
                   Completion completion, std::optional<Duration> timeout = std::nullopt);

}  // namespace ringlet
