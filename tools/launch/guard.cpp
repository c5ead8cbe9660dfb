#include "tools/launch/guard.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>

#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

Guard::Guard(uv_loop_t* loop, const std::string& helper_path, std::function<void()> on_lost) : on_gone_(std::move(on_lost)) {
  std::array<uv_file, 2> ends{};
  int error = uv_pipe(ends.data(), 0, 0);
  if (error == 0) {
    const UniqueFd read_end(ends[0]);
    pipe_.reset(ends[1]);
    std::string path = helper_path;
    std::string command = kGuardCommand;
    std::array<char*, 3> arguments{path.data(), command.data(), nullptr};
    std::array<uv_stdio_container_t, 3> stdio{};
    stdio[0].flags = UV_INHERIT_FD;
    stdio[0].data.fd = read_end.get();
    uv_process_options_t options{};
    options.file = path.c_str();
    options.args = arguments.data();
    options.stdio = stdio.data();
    options.stdio_count = static_cast<int>(stdio.size());
    options.flags = UV_PROCESS_DETACHED;
    error = process_.spawn(loop, options, [this](std::int64_t, int) {
      gone_ = true;
      on_gone_();
    });
  }
  if (error != 0) throw LaunchError(1, "cannot start '" + helper_path + "' as the guard of the ranks: " + uv_strerror(error));
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
