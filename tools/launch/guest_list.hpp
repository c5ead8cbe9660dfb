#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringlet::launch {

/// Makes sentences of rank 0's reports about the guests that wait (native/presence.hpp).
class GuestList {
 public:
  explicit GuestList(int wanted) : wanted_(wanted) {}

  /// Takes bytes as they come. "browser 1 of 2 is here: Chromium on Linux, 10.0.0.7:51000", "a browser left: ...; 0 of 2 are here".
  std::vector<std::string> feed(std::string_view bytes);

 private:
  void compare(std::vector<std::string> names, std::vector<std::string>& sentences);

  const int wanted_;
  std::string line_;
  std::vector<std::string> names_;
};

}  // namespace ringlet::launch
