#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/session.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/retry_pause.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

struct KnockingOptions {
  std::vector<Address> doors;                // at least one; tried in turn
  std::string name;                          // of this process, for people
  Duration timeout = Duration::seconds(60);  // until there is a ticket
  SessionOptions session{};
};

/// Gets a process into a group that runs: it knocks at one of the doors, waits there, and tries the next one where that fails, until the
/// group admits it. The connection with the door stays open as long as this object lives, which tells the group that this process does.
/// Belongs to the loop's thread.
class Knocking final : private SessionOwner {
 public:
  /// Runs once, from the loop: with a ticket whose host is set, or with a status of DialHandshake that trying again does not change, or
  /// `timed_out`, which names the doors and the last reason.
  using OnAnswer = std::function<void(Result<wire::Ticket>)>;

  /// All arguments outlive it.
  Knocking(EventLoop& loop, Network& network, Authenticator& authenticator, KnockingOptions options, OnAnswer on_answer);
  ~Knocking();
  Knocking(const Knocking&) = delete;
  Knocking& operator=(const Knocking&) = delete;

 private:
  const Address& door() const { return options_.doors[current_]; }
  void dial();
  void on_dialled(Result<std::unique_ptr<Link>> link);
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_control(Session& session, ConstBytes payload) override;
  void on_session_failed(Session& session, const Status& status) override;
  void on_session_ended(Session& session) override;
  void on_deadline();
  void try_next(const std::string& reason);
  void close_session();
  void finish(Result<wire::Ticket> outcome);

  EventLoop& loop_;
  const KnockingOptions options_;
  OnAnswer on_answer_;  // until it runs
  Dialler dialler_;
  std::size_t current_ = 0;  // the door
  RefusalsInRow refusals_;
  std::unique_ptr<Session> session_;
  std::string last_reason_;
  RetryPause retry_pause_;
  TimerId deadline_timer_ = 0;
  TimerId patience_timer_ = 0;  // while it waits at a door
  AliveGuard guard_;
};

}  // namespace ringlet
