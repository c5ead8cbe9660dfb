#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/session.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// A peer that has dialled this rank and knows the token, but whose rank is not known or not agreed on yet. Belongs to the loop's thread.
class UnidentifiedPeer final : private SessionOwner {
 public:
  /// Both run from the loop, inside a call of the session. release() may be called inside them, but this object may only be destroyed
  /// later.
  struct Callbacks {
    /// A control message, or nothing where the peer sent anything else.
    std::function<void(UnidentifiedPeer&, const std::optional<wire::ControlMessage>&)> on_message;
    /// The connection has ended or broken.
    std::function<void(UnidentifiedPeer&)> on_gone;
  };

  /// The loop outlives it.
  UnidentifiedPeer(EventLoop& loop, std::unique_ptr<Link> link, const SessionOptions& options, Callbacks callbacks);

  /// The peer's address, such as "127.0.0.1:40123".
  std::string name() const { return session_->peer_name(); }
  void send(const wire::ControlMessage& message);
  /// Sets how long a message may be from now on. The first one has to be short.
  void set_max_message_bytes(std::size_t bytes) { max_message_bytes_ = bytes; }
  /// Hands the session to its next owner. The callbacks do not run any more.
  std::unique_ptr<Session> release() { return std::move(session_); }

 private:
  PayloadSink* on_frame(Session& session, const FrameHeader& header) override;
  void on_control(Session& session, ConstBytes payload) override;
  void on_session_failed(Session&, const Status&) override { callbacks_.on_gone(*this); }
  void on_session_ended(Session&) override { callbacks_.on_gone(*this); }

  const Callbacks callbacks_;
  std::size_t max_message_bytes_;
  std::unique_ptr<Session> session_;
};

}  // namespace ringlet
