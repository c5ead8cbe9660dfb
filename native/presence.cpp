#include "native/presence.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "transport/uv/socket.hpp"

namespace ringlet::native {

PresenceReport::~PresenceReport() { end(); }

void PresenceReport::tell(const std::vector<std::string>& names) {
  if (!descriptor_) return;
  std::string line;
  for (const std::string& name : names) line += (line.empty() ? "" : "\t") + name;
  line += '\n';
  const ssize_t sent = ::send(*descriptor_, line.data(), line.size(), MSG_DONTWAIT | uv::kSendFlags);
  if (sent != static_cast<ssize_t>(line.size())) end();
}

void PresenceReport::end() {
  if (descriptor_) ::close(*descriptor_);
  descriptor_.reset();
}

}  // namespace ringlet::native
