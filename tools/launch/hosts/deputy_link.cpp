#include "tools/launch/hosts/deputy_link.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <array>

#include "tools/launch/launch_error.hpp"
#include "tools/launch/pipe.hpp"

namespace ringlet::launch {

namespace {

constexpr std::size_t kMaxComplaint = 8192;

}  // namespace

DeputyLink::DeputyLink(uv_loop_t* loop, std::vector<std::string> command, Events events) : events_(std::move(events)) {
  Pipe in = open_pipe(0, UV_NONBLOCK_PIPE), out = open_pipe(UV_NONBLOCK_PIPE, 0), err = open_pipe(UV_NONBLOCK_PIPE, 0);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<uv_stdio_container_t, 3> stdio{};
  const std::array<int, 3> ends{in.read_end.get(), out.write_end.get(), err.write_end.get()};
  for (std::size_t i = 0; i < stdio.size(); ++i) {
    stdio[i].flags = UV_INHERIT_FD;
    stdio[i].data.fd = ends[i];
  }
  uv_process_options_t options{};
  options.file = command.front().c_str();
  options.args = arguments.data();
  options.stdio = stdio.data();
  options.stdio_count = static_cast<int>(stdio.size());
  options.flags = UV_PROCESS_DETACHED;
  const auto on_exited = [this](std::int64_t status, int signal_number) {
    on_exit(signal_number != 0 ? 128 + signal_number : static_cast<int>(status));
  };
  if (const int error = process_.spawn(loop, options, on_exited); error != 0)
    throw LaunchError(1,
                      fmt::format("cannot start '{}': {}; name the program that connects with --ssh", command.front(), uv_strerror(error)));
  to_ = std::move(in.write_end);
  out_.emplace(loop, to_.get());
  const auto on_bytes = [this](std::string_view bytes) {
    try {
      messages_.feed(bytes, events_.on_message);
    } catch (const LaunchError& error) {
      events_.on_nonsense(error.what());
    }
  };
  const auto on_complaint = [this](std::string_view bytes) {
    complaint_.append(bytes);
    if (complaint_.size() > kMaxComplaint) complaint_.erase(0, complaint_.size() - kMaxComplaint);
  };
  in_.emplace(loop, std::move(out.read_end), on_bytes, [this] { end_if_over(); });
  err_.emplace(loop, std::move(err.read_end), on_complaint, [this] { end_if_over(); });
}

void DeputyLink::send(const std::string& message) {
  if (out_) out_->write(message);
}

void DeputyLink::close() {
  out_.reset();
  to_.reset();
}

void DeputyLink::kill(int signal_number) {
  if (!exited_) ::kill(process_.pid(), signal_number);
}

void DeputyLink::pause() { in_->pause(); }
void DeputyLink::resume() { in_->resume(); }

void DeputyLink::on_exit(int exit_code) {
  exited_ = true;
  exit_code_ = exit_code;
  close();
  // A connection that ssh shares with others may keep the pipes open.
  in_->end_after_present_bytes();
  err_->end_after_present_bytes();
  end_if_over();
}

void DeputyLink::end_if_over() {
  if (ended_ || !exited_ || !in_->ended() || !err_->ended()) return;
  ended_ = true;
  events_.on_end();
}

}  // namespace ringlet::launch
