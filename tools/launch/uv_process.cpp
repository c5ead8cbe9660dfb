#include <sys/wait.h>

#include <algorithm>
#include <map>

#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

/// The processes that libuv waits for.
std::map<const uv_process_t*, pid_t>& running() {
  static std::map<const uv_process_t*, pid_t> processes;
  return processes;
}

bool is_running(pid_t process) {
  return std::any_of(running().begin(), running().end(), [&](const auto& one) { return one.second == process; });
}

}  // namespace

void reap_adopted() {
  for (siginfo_t ended{}; ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0; ended = {}) {
    // Those behind it are reaped when libuv has seen this one.
    if (is_running(ended.si_pid)) return;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

UvProcess::~UvProcess() { running().erase(handle()); }

int UvProcess::spawn(uv_loop_t* loop, ChildOptions child, std::function<void(std::int64_t, int)> on_exit) {
  std::vector<char*> arguments = pointers_to(child.arguments);
  std::vector<char*> environment;
  std::vector<uv_stdio_container_t> stdio(child.descriptors.size());
  for (std::size_t i = 0; i < stdio.size(); ++i) {
    if (child.descriptors[i] < 0) continue;
    stdio[i].flags = UV_INHERIT_FD;
    stdio[i].data.fd = child.descriptors[i];
  }
  uv_process_options_t options{};
  options.file = arguments.front();
  options.args = arguments.data();
  if (child.environment) options.env = (environment = pointers_to(*child.environment)).data();
  if (!child.directory.empty()) options.cwd = child.directory.c_str();
  options.flags = UV_PROCESS_DETACHED;
  options.stdio = stdio.data();
  options.stdio_count = static_cast<int>(stdio.size());
  options.exit_cb = [](uv_process_t* process, std::int64_t status, int signal_number) {
    running().erase(process);
    reap_adopted();
    fire(process, status, signal_number);
  };
  set_callback(std::move(on_exit));
  const int error = uv_spawn(loop, handle(), &options);
  // uv_spawn registers the handle with the loop before it can fail.
  mark_initialised();
  if (error == 0) running()[handle()] = pid();
  return error;
}

}  // namespace ringlet::launch
