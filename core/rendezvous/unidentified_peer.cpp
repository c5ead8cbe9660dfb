#include "core/rendezvous/unidentified_peer.hpp"

#include <utility>

#include "core/engine/send_control.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxFirstMessageBytes = 4096;

}  // namespace

UnidentifiedPeer::UnidentifiedPeer(EventLoop& loop, std::unique_ptr<Link> link, const SessionOptions& options, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      max_message_bytes_(kMaxFirstMessageBytes),
      session_(std::make_unique<Session>(std::move(link), loop, static_cast<SessionOwner&>(*this), options)) {}

void UnidentifiedPeer::send(const wire::ControlMessage& message) { send_control(*session_, message); }

PayloadSink* UnidentifiedPeer::on_frame(Session& session, const FrameHeader& header) {
  if (header.kind != FrameKind::control || header.payload_bytes > max_message_bytes_) {
    callbacks_.on_message(*this, std::nullopt);
    return nullptr;
  }
  return session.gather_control();
}

void UnidentifiedPeer::on_control(Session&, ConstBytes payload) { callbacks_.on_message(*this, wire::decode_control(payload)); }

}  // namespace ringlet
