#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

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
  options.exit_cb = [](uv_process_t* process, std::int64_t status, int signal_number) { fire(process, status, signal_number); };
  set_callback(std::move(on_exit));
  const int error = uv_spawn(loop, handle(), &options);
  // uv_spawn registers the handle with the loop before it can fail.
  mark_initialised();
  return error;
}

}  // namespace ringlet::launch
