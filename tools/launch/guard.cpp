#include "tools/launch/guard.hpp"

#include <unistd.h>

#include <cstdint>

#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/pipe.hpp"

namespace ringlet::launch {

Guard::Guard(uv_loop_t* loop, const std::string& helper_path, std::function<void()> on_lost) : on_gone_(std::move(on_lost)) {
  PipeEnds pipe = open_pipe(0, 0);
  pipe_ = std::move(pipe.write_end);
  const auto on_exit = [this](std::int64_t, int) {
    gone_ = true;
    on_gone_();
  };
  if (const int error = process_.spawn(loop, {{helper_path, kGuardCommand}, {pipe.read_end.get(), -1, -1}}, on_exit); error != 0)
    throw LaunchError(1, "cannot start '" + helper_path + "' as the guard of the ranks: " + uv_strerror(error));
}

void Guard::forget(pid_t group) {
  const std::int32_t change = -group;
  // The loss of a guard has been reported already.
  if (!gone_) [[maybe_unused]]
    const ssize_t count = ::write(pipe_.get(), &change, sizeof change);
}

void Guard::dismiss(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  pipe_.reset();
  if (gone_) on_gone_();
}

}  // namespace ringlet::launch
