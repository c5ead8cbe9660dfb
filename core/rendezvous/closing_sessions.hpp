#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/session.hpp"

namespace ringlet {

/// Sessions that are no longer used, and stay until their last message has had time to arrive. The bytes that they receive are dropped.
/// Belongs to the loop's thread.
class ClosingSessions final : private SessionOwner {
 public:
  /// The loop outlives it.
  ClosingSessions(EventLoop& loop, const SessionOptions& options) : loop_(loop), options_(options) {}

  /// Ends this side's direction, and destroys the session a second later.
  void close(std::unique_ptr<Session> session);
  /// Like close(), with the reason as the last message.
  void reject(std::unique_ptr<Session> session, const Status& reason);
  /// Like reject() above, over a link that carries nothing yet.
  void reject(std::unique_ptr<Link> link, const Status& reason);
  /// Destroys the session once the peer has ended it. Used where the peer would take an earlier end by this side for the end of this rank.
  void close_after_peer(std::unique_ptr<Session> session);
  /// The number of sessions that close() has taken and not destroyed yet.
  std::size_t size() const { return closing_.size(); }

 private:
  PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
  void on_session_failed(Session& session, const Status&) override { on_session_ended(session); }
  void on_session_ended(Session& session) override;
  void take_over(Session& session);

  EventLoop& loop_;
  const SessionOptions options_;
  std::deque<std::unique_ptr<Session>> closing_;  // in the order in which they are to be destroyed
  std::vector<std::unique_ptr<Session>> awaiting_peer_;
  AliveGuard guard_;
};

}  // namespace ringlet
