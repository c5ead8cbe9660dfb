#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/job/messages.hpp"

namespace ringlet::launch {

/// Reads what a rank says of the groups that it comes into (RINGLET_MEMBERSHIP_FD, native/status/membership.hpp): a line of JSON each time.
class MembershipLines {
 public:
  /// Takes bytes, and returns what has come whole. A line that is too long, or is something else, is skipped. `rank` is not set.
  std::vector<job::Membership> feed(std::string_view bytes);

 private:
  std::string line_;
  bool too_long_ = false;
};

}  // namespace ringlet::launch
