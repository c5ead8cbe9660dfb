#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/job/messages.hpp"

namespace ringlet::launch {

/// Reads what a rank says of its groups (RINGLET_MEMBERSHIP_FD, native/status/membership.hpp): a line of JSON each time.
class MembershipLines {
 public:
  /// Takes bytes, and returns what has come whole. A line that is too long, or is something else, is skipped. `rank` is not set.
  std::vector<job::Membership> feed(std::string_view bytes);
  /// The rank whose loss has ended the last group, if that was told.
  std::optional<std::uint32_t> lost() const { return lost_; }

 private:
  std::optional<job::Membership> parse(const std::string& line);

  std::string line_;
  bool too_long_ = false;
  std::optional<std::uint32_t> lost_;
};

}  // namespace ringlet::launch
