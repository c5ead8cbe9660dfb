#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ringlet::native {

/// Tells the process that started this rank 0 which guests wait, over an inherited stream socket (RINGLET_PRESENCE_FD). It sends a line
/// each time a guest comes or goes, with the names of all guests and tabs between them.
class PresenceReport {
 public:
  explicit PresenceReport(std::optional<int> descriptor) : descriptor_(descriptor) {}
  ~PresenceReport();
  PresenceReport(const PresenceReport&) = delete;
  PresenceReport& operator=(const PresenceReport&) = delete;

  /// Does not block. Where the reader does not take a line, the socket is closed and nothing more is sent.
  void tell(const std::vector<std::string>& names);
  void end();

 private:
  std::optional<int> descriptor_;
};

}  // namespace ringlet::native
