#pragma once

#include <optional>
#include <string>

#include "core/base/alive_guard.hpp"
#include "core/ports/link.hpp"
#include "tools/launch/uv_handles.hpp"
#include "transport/unique_fd.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::launch {

/// A link over two descriptors: one to read from and one to write to.
class PipeLink : public Link {
 public:
  /// Makes both descriptors non-blocking; throws `LaunchError` where one cannot be watched. `loop` outlives it.
  PipeLink(UvLoop& loop, UniqueFd in, UniqueFd out, std::string peer_name);
  ~PipeLink() override;

  void start(LinkUser& user) override;
  void wake() override;
  void finish_sending() override;
  std::string peer_name() const override { return peer_name_; }

 protected:
  /// The other end has closed the pipe, or it failed. Nothing more is read or written.
  virtual void on_pipe_end() { user_->receive_ended(); }
  /// Reads what the pipe holds, whoever else still has it open, and then takes it for closed.
  void end_after_present_bytes();
  void later(void (PipeLink::*task)());
  LinkUser* user() const { return user_; }

 private:
  void go_on();
  bool receive();
  bool transmit();
  void end();

  UvLoop& loop_;
  UniqueFd in_, out_;
  std::string peer_name_;
  std::optional<UvPoll> in_poll_, out_poll_;
  LinkUser* user_ = nullptr;
  bool pending_ = false;    // go_on() will run
  bool finishing_ = false;  // `out_` is closed when all has been sent
  bool draining_ = false;   // nothing is awaited any more
  bool ended_ = false;
  AliveGuard alive_;
};

}  // namespace ringlet::launch
