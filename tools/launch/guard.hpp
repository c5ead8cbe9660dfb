#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "tools/launch/uv_handles.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// A process that kills the ranks' process groups should the launcher be killed before it could do so itself.
/// It has a session of its own, so that a signal to the launcher's terminal or process group does not end it.
class Guard {
 public:
  /// Starts it; throws `LaunchError`. `on_lost` is called if it ends before `dismiss`.
  Guard(uv_loop_t* loop, const std::string& helper_path, std::function<void()> on_lost);

  /// The pipe with which each rank's helper registers its group.
  int registration_fd() const noexcept { return pipe_.get(); }
  /// The group has no process left; its number may be given to another.
  void forget(pid_t group);
  /// Lets it go; `on_gone` is called when it has ended.
  void dismiss(std::function<void()> on_gone);

 private:
  UniqueFd pipe_;
  UvProcess process_;
  bool gone_ = false;
  std::function<void()> on_gone_;
};

}  // namespace ringlet::launch
