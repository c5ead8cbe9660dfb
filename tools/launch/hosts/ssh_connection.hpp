#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "core/base/result.hpp"
#include "core/ports/link.hpp"
#include "tools/launch/hosts/ssh_command.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::launch {

class SshLink;

/// Starts a deputy on a host: by ssh, or on this machine directly. The process has three pipes and a session of its own, so that Ctrl-C
/// does not end it; it is ended with the link, or with this object where there is none.
class SshConnection final : private LinkUser {
 public:
  /// Runs once, from the loop: the link, behind the deputy's greeting, or a sentence that says why there is none and what to do.
  using OnDone = std::function<void(Result<std::unique_ptr<Link>>)>;

  /// Throws `LaunchError` where the process cannot be started. All are borrowed.
  SshConnection(UvLoop& loop, const Host& host, const SshOptions& options, const std::string& helper_path, OnDone on_done);
  ~SshConnection();
  SshConnection(const SshConnection&) = delete;
  SshConnection& operator=(const SshConnection&) = delete;

 private:
  std::span<const ConstBytes> to_send() override { return {}; }
  void sent(std::size_t) override {}
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override {}
  void link_failed(const Status& status) override;
  void fail(const std::string& why);

  UvLoop& loop_;
  const Host& host_;
  const SshOptions& options_;
  const std::string& helper_path_;
  const OnDone on_done_;
  std::unique_ptr<SshLink> link_;
  TimerId timer_ = 0;
  std::array<std::byte, 1> byte_{};
  Bytes part_{byte_};
  std::string heard_;  // the last bytes, as many as the greeting has
  std::size_t heard_bytes_ = 0;
  bool failed_ = false;
};

}  // namespace ringlet::launch
