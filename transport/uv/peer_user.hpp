#pragma once

namespace ringlet::uv {

/// Whether the program at the other end of a connected Unix-domain socket runs as this process' user, or as root.
bool is_of_same_user(int socket);

}  // namespace ringlet::uv
