#include <sys/socket.h>
#include <unistd.h>

#include "transport/uv/peer_user.hpp"

namespace ringlet::uv {

bool is_of_same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace ringlet::uv
