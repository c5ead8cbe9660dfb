#pragma once

#include <string>
#include <utility>
#include <vector>

#include "transport/unique_fd.hpp"

namespace ringlet::native {

/// Tells the process that started this rank 0 which guests wait, over an inherited stream socket (RINGLET_PRESENCE_FD). It sends a line
/// each time a guest comes or goes, with the names of all guests and tabs between them.
class PresenceReport {
 public:
  /// Without a socket nothing is told.
  explicit PresenceReport(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Does not block. Where the reader does not take a line, the socket is closed and nothing more is sent.
  void tell(const std::vector<std::string>& names);
  void end() { socket_.reset(); }

 private:
  UniqueFd socket_;
};

}  // namespace ringlet::native
