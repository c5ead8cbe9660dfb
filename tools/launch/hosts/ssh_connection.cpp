#include "tools/launch/hosts/ssh_connection.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <utility>

#include "tools/launch/deputy.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/pipe.hpp"
#include "tools/launch/pipe_link.hpp"
#include "tools/launch/pipe_reader.hpp"

namespace ringlet::launch {

namespace {

constexpr std::size_t kMaxComplaint = 8192;
constexpr std::size_t kMaxNoise = 256 * 1024;
constexpr Duration kPatience = Duration::seconds(30);

}  // namespace

/// The link fails when the process has ended and its output has been read; the status says how it ended.
class SshLink final : public PipeLink {
 public:
  struct ChildPipes {
    PipeEnds in = open_pipe(0, UV_NONBLOCK_PIPE), out = open_pipe(UV_NONBLOCK_PIPE, 0), err = open_pipe(UV_NONBLOCK_PIPE, 0);
  };

  SshLink(UvLoop& loop, const Host& host, const std::vector<std::string>& command, ChildPipes pipes)
      : PipeLink(loop, std::move(pipes.out.read_end), std::move(pipes.in.write_end), host.ssh), host_(host) {
    const auto on_exited = [this](std::int64_t status, int signal_number) {
      exited_ = true;
      exit_code_ = signal_number != 0 ? 128 + signal_number : static_cast<int>(status);
      // A connection that ssh shares with others may keep the pipes open.
      end_after_present_bytes();
      err_->end_after_present_bytes();
      later(&SshLink::fail_if_over);
    };
    ChildOptions child{command, {pipes.in.read_end.get(), pipes.out.write_end.get(), pipes.err.write_end.get()}};
    if (const int error = process_.spawn(loop.uv(), std::move(child), on_exited); error != 0)
      throw LaunchError(
          1, fmt::format("cannot start '{}': {}; name the program that connects with --ssh", command.front(), uv_strerror(error)));
    const auto on_complaint = [this](std::string_view bytes) {
      complaint_.append(bytes);
      if (complaint_.size() > kMaxComplaint) complaint_.erase(0, complaint_.size() - kMaxComplaint);
    };
    err_.emplace(loop.uv(), std::move(pipes.err.read_end), on_complaint, [this] { later(&SshLink::fail_if_over); });
  }
  ~SshLink() override {
    if (!exited_) ::kill(process_.pid(), SIGTERM);
  }

  int exit_code() const noexcept { return exit_code_; }
  /// The last part of its stderr.
  const std::string& complaint() const noexcept { return complaint_; }

 private:
  void later(void (SshLink::*task)()) { PipeLink::later(static_cast<void (PipeLink::*)()>(task)); }
  void on_pipe_end() override {
    pipe_ended_ = true;
    fail_if_over();
  }
  void fail_if_over() {
    if (failed_ || !exited_ || !pipe_ended_ || !err_->ended()) return;
    failed_ = true;
    user()->link_failed({Errc::peer_lost, explain_loss(host_, exit_code_, complaint_)});
  }

  const Host& host_;
  UvProcess process_;
  std::optional<PipeReader> err_;
  std::string complaint_;
  int exit_code_ = 0;
  bool exited_ = false, pipe_ended_ = false, failed_ = false;
};

SshConnection::SshConnection(UvLoop& loop, const Host& host, const SshOptions& options, const std::string& helper_path, OnDone on_done)
    : loop_(loop), host_(host), options_(options), helper_path_(helper_path), on_done_(std::move(on_done)) {
  link_ = std::make_unique<SshLink>(loop, host, deputy_command(host, options, helper_path), SshLink::ChildPipes());
  link_->start(*this);
  timer_ = loop.after(kPatience, [this] {
    fail(fmt::format("{}: no answer within {} s; try: {} {} true", host_.ssh, kPatience.whole_milliseconds() / 1000,
                     fmt::join(options_.ssh, " "), host_.ssh));
  });
}

SshConnection::~SshConnection() { loop_.cancel(timer_); }

std::span<const Bytes> SshConnection::to_receive() {
  if (failed_) return {};
  return {&part_, 1};
}

void SshConnection::received(std::size_t) {
  // The greeting is read a byte at a time, so that no byte behind it is taken.
  heard_ += static_cast<char>(byte_[0]);
  if (heard_.size() > kGreeting.size()) heard_.erase(0, 1);
  if (heard_ == kGreeting) {
    loop_.cancel(timer_);
    on_done_(std::unique_ptr<Link>(std::move(link_)));
  } else if (++heard_bytes_ > kMaxNoise) {
    fail(host_.ssh + ": its login prints without end; nothing there may write to stdout before the command");
  }
}

void SshConnection::link_failed(const Status&) {
  fail(explain_failure(host_, options_, helper_path_, link_->exit_code(), link_->complaint()));
}

void SshConnection::fail(const std::string& why) {
  if (std::exchange(failed_, true)) return;
  loop_.cancel(timer_);
  on_done_(Status{Errc::peer_lost, why});
}

}  // namespace ringlet::launch
