#include "transport/uv/socket.hpp"

namespace ringlet::uv {

std::optional<SendCounters> send_counters(int) { return std::nullopt; }

}  // namespace ringlet::uv
