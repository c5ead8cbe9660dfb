#include "core/rendezvous/unidentified_peer.hpp"

#include <utility>

#include "core/engine/payload_sink.hpp"
#include "core/engine/send_control.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kMaxFirstMessageBytes = 4096;

}  // namespace

class UnidentifiedPeer::Sink final : public GatheringSink {
 public:
  explicit Sink(UnidentifiedPeer& peer) : peer_(peer) {}
  void frame_ended() override { peer_.callbacks_.on_message(peer_, wire::decode_control(gathered())); }

 private:
  UnidentifiedPeer& peer_;
};

UnidentifiedPeer::UnidentifiedPeer(EventLoop& loop, std::unique_ptr<Link> link, const SessionOptions& options, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      max_message_bytes_(kMaxFirstMessageBytes),
      sink_(std::make_unique<Sink>(*this)),
      session_(std::make_unique<Session>(std::move(link), loop, static_cast<SessionOwner&>(*this), options)) {}

UnidentifiedPeer::~UnidentifiedPeer() = default;

void UnidentifiedPeer::send(const wire::ControlMessage& message) { send_control(*session_, message); }

PayloadSink* UnidentifiedPeer::on_frame(Session&, const FrameHeader& header) {
  if (header.kind != FrameKind::control || header.payload_bytes > max_message_bytes_) {
    callbacks_.on_message(*this, std::nullopt);
    return nullptr;
  }
  sink_->begin();
  return sink_.get();
}

}  // namespace ringlet
