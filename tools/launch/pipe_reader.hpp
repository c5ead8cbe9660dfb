#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "tools/launch/uv_handles.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// The launcher's end of a pipe that a rank writes into.
class PipeReader {
 public:
  /// `on_bytes` borrows its argument to the caller until it returns; `on_end` runs once, after the last bytes. Both on the loop thread.
  PipeReader(uv_loop_t* loop, UniqueFd fd, std::function<void(std::string_view)> on_bytes, std::function<void()> on_end);

  void pause();
  void resume();
  /// Reads what the pipe holds now, without waiting for the loop to come round.
  void read_present_bytes();
  /// Ends after the bytes that the pipe holds now, even if a process still has it open.
  void end_after_present_bytes();
  bool ended() const noexcept { return !fd_; }

 private:
  void read_some();
  void end();

  UniqueFd fd_;
  std::function<void(std::string_view)> on_bytes_;
  std::function<void()> on_end_;
  std::optional<UvPoll> poll_;
  bool paused_ = false;
  bool draining_ = false;
  int bytes_left_ = 0;  // while draining
};

}  // namespace ringlet::launch
