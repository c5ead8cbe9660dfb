#include "native/presence.hpp"

#include <sys/socket.h>

#include "transport/uv/socket.hpp"

namespace ringlet::native {

void PresenceReport::tell(const std::vector<std::string>& names) {
  if (!socket_) return;
  std::string line;
  for (const std::string& name : names) line += (line.empty() ? "" : "\t") + name;
  line += '\n';
  const ssize_t sent = ::send(socket_.get(), line.data(), line.size(), MSG_DONTWAIT | uv::kSendFlags);
  if (sent != static_cast<ssize_t>(line.size())) end();
}

}  // namespace ringlet::native
