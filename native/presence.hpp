#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ringlet::native {

/// Tells whoever started this rank 0 which guests wait, on a stream socket that was inherited (RINGLET_PRESENCE_FD): their names with tabs
/// between them, a line each time someone comes or goes.
class PresenceReport {
 public:
  explicit PresenceReport(std::optional<int> descriptor) : descriptor_(descriptor) {}
  ~PresenceReport();
  PresenceReport(const PresenceReport&) = delete;
  PresenceReport& operator=(const PresenceReport&) = delete;

  /// Does not wait: to who reads no more nothing more is told.
  void tell(const std::vector<std::string>& names);
  void end();

 private:
  std::optional<int> descriptor_;
};

}  // namespace ringlet::native
