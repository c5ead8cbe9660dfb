#pragma once

#include <memory>
#include <utility>

#include "core/ports/event_loop.hpp"
#include "tools/job/message_channel.hpp"

namespace ringlet::job {

/// Two channels of which each receives what the other one sends, for a job's ranks on the machine that runs it.
std::pair<std::unique_ptr<MessageChannel>, std::unique_ptr<MessageChannel>> make_local_channels(EventLoop& loop);

}  // namespace ringlet::job
