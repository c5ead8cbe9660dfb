#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/hosts/messages.hpp"
#include "tools/launch/output_stream.hpp"
#include "tools/launch/pipe_reader.hpp"
#include "tools/launch/uv_handles.hpp"

namespace ringlet::launch {

/// The launcher's end of the way to a deputy: ssh, or the deputy itself, as a process with three pipes, in a session of its own, so that
/// Ctrl-C does not end it.
class DeputyLink {
 public:
  struct Events {
    /// Borrows the body until it returns.
    MessageReader::OnMessage on_message;
    /// What came is no message.
    std::function<void(const std::string& what)> on_nonsense;
    /// Once: the process has ended, and all that it said has been heard.
    std::function<void()> on_end;
  };

  /// Starts `command`; throws `LaunchError`.
  DeputyLink(uv_loop_t* loop, std::vector<std::string> command, Events events);

  /// Does nothing once the process is gone.
  void send(const std::string& message);
  /// Nothing more will be sent: the deputy ends what it has, and then itself.
  void close();
  void kill(int signal_number);
  void pause();
  void resume();

  bool ended() const noexcept { return ended_; }
  /// After the end: its exit code, or 128 + signal.
  int exit_code() const noexcept { return exit_code_; }
  /// The last of what it wrote to stderr.
  const std::string& complaint() const noexcept { return complaint_; }

 private:
  void on_exit(int exit_code);
  void end_if_over();

  Events events_;
  MessageReader messages_{true};
  UvProcess process_;
  UniqueFd to_;
  std::optional<OutputStream> out_;
  std::optional<PipeReader> in_, err_;
  std::string complaint_;
  int exit_code_ = 0;
  bool exited_ = false;
  bool ended_ = false;
};

}  // namespace ringlet::launch
