#pragma once

#include <cstdint>
#include <ringlet/status.hpp>
#include <string>
#include <vector>

namespace ringlet::native {

/// The socket at which one of this user's ranks can be asked for the state of its world.
struct StatusAddress {
  std::string path;
  std::uint64_t world = 0;
  int rank = 0;
  int process = 0;
};

/// The directory of this user's sockets: `ringlet` in XDG_RUNTIME_DIR where that is this user's, else one in the directory for temporary
/// files with the user's number in its name.
std::string status_directory();
/// Makes the directory where it is missing. Returns `io_error` where it cannot be made, or is not a directory that this user alone may
/// enter.
Status make_status_directory(const std::string& directory);
/// Makes the same check of a directory that does not have to exist.
Status check_status_directory(const std::string& directory);

/// The socket's path for a rank of this process.
std::string status_path(const std::string& directory, std::uint64_t world, int rank);
/// Removes the sockets of processes that have died, and returns all others in the directory, by world and rank.
std::vector<StatusAddress> find_status_addresses(const std::string& directory);

}  // namespace ringlet::native
