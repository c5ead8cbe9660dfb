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
/// procedure has been released by then. `loop` is the groups' loop; the groups have to live until the completion has run.
///
/// Until then nothing else may be started on this stream, because the other ranks run the procedure's collectives one after the other.
/// `timeout` applies to each collective; where it is not set, that of the groups does.
void run_procedure(EventLoop& loop, std::shared_ptr<Procedure> procedure, std::vector<GroupEngine*> groups, std::uint16_t stream,
                   Completion completion, std::optional<Duration> timeout = std::nullopt);

}  // namespace ringlet
