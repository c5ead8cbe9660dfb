#pragma once

#include <functional>
#include <string_view>

#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// Reads the launcher's standard input for a rank on another machine, a piece at a time, as fast as that one takes it.
class InputFeed {
 public:
  /// `on_bytes` gets each piece, and at the end an empty one; it borrows its argument.
  InputFeed(uv_loop_t* loop, std::function<void(std::string_view)> on_bytes);

  /// The last piece has been taken: reads the next one, which may call back at once.
  void read_next();

 private:
  void read_some();

  std::function<void(std::string_view)> on_bytes_;
  UvPoll poll_;
  bool pollable_ = false;  // a file is always ready
  bool ended_ = false;
};

}  // namespace ringlet::launch
