#include "core/engine/outgoing_message.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/peer_messages.hpp"

namespace ringlet {

OutgoingMessage::OutgoingMessage(PeerMessages& peer, std::uint64_t sequence, MessageTask task)
    : task_(std::move(task)),
      peer_(peer),
      sequence_(sequence),
      record_(encode_message_shape(task_.shape)),
      deadline_(peer.group().loop().now() + task_.timeout),
      eager_(peer.take_eager(task_.source.size())) {}

std::optional<OutgoingFrame> OutgoingMessage::next_frame() {
  FrameHeader header = peer_.header(FrameKind::offer, sequence_);
  if (!offered_) {
    if (!peer_.session().take_early_record(*this, {0, EarlyCost::kRecordBytes})) return std::nullopt;
    offered_ = true;
    ++frames_out_;
    header.flags = eager_ ? kFlagEager : std::uint8_t{0};
    header.payload_bytes = static_cast<std::uint32_t>(record_.size);
    return OutgoingFrame{header, ConstBytes(record_.bytes).first(record_.size)};
  }
  if (offset_ == task_.source.size() || !(eager_ || accepted_)) return std::nullopt;
  const std::size_t bytes = std::min(task_.source.size() - offset_, peer_.group().options().segment_bytes);
  header.kind = FrameKind::message;
  header.payload_bytes = static_cast<std::uint32_t>(bytes);
  header.offset = offset_;
  offset_ += bytes;
  ++frames_out_;
  return OutgoingFrame{header, task_.source.subspan(static_cast<std::size_t>(header.offset), bytes)};
}

void OutgoingMessage::frame_sent(const FrameHeader&) {
  --frames_out_;
  finish_if_done();
}

void OutgoingMessage::on_accept() {
  accepted_ = true;
  give_back();
  peer_.session().mark_ready(*this);
  finish_if_done();
}

void OutgoingMessage::on_refuse(Status status) {
  refused_ = true;
  outcome_ = std::move(status);
  give_back();
  finish_if_done();
}

void OutgoingMessage::give_back() { peer_.session().give_back_early({eager_ ? task_.source.size() : 0, EarlyCost::kRecordBytes}); }

void OutgoingMessage::finish_if_done() {
  const bool all_out = offered_ && frames_out_ == 0 && (offset_ == task_.source.size() || (refused_ && !eager_));
  if (!all_out || !answered()) return;
  peer_.session().withdraw(*this);
  peer_.finish_outgoing(sequence_);  // destroys this
}

}  // namespace ringlet
