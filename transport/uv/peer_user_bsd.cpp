#include <sys/types.h>
#include <unistd.h>

#include "transport/uv/peer_user.hpp"

namespace ringlet::uv {

bool is_of_same_user(int socket) {
  uid_t user = 0;
  gid_t group = 0;
  return ::getpeereid(socket, &user, &group) == 0 && (user == ::geteuid() || user == 0);
}

}  // namespace ringlet::uv
