#include "core/engine/incoming_message.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "core/engine/peer_messages.hpp"

namespace ringlet {

IncomingMessage::IncomingMessage(PeerMessages& peer, std::uint64_t sequence, MessageTask task)
    : task_(std::move(task)), peer_(peer), sequence_(sequence), deadline_(peer.group().loop().now() + task_.timeout) {}

Status IncomingMessage::begin_frame(const FrameHeader& header) const {
  if (!matched_) return {Errc::protocol_error, "bytes of a message that was not accepted"};
  if (header.offset != offset_ || header.payload_bytes > task_.destination.size() - offset_ || header.payload_bytes == 0)
    return {Errc::protocol_error, "bytes " + std::to_string(header.offset) + "+" + std::to_string(header.payload_bytes) +
                                      " of a message of " + std::to_string(task_.destination.size()) + " bytes where byte " +
                                      std::to_string(offset_) + " is due"};
  return {};
}

void IncomingMessage::take(ConstBytes bytes) {
  if (!bytes.empty()) std::memcpy(task_.destination.data() + offset_, bytes.data(), bytes.size());
  offset_ += bytes.size();
}

std::size_t IncomingMessage::consume(ConstBytes bytes) {
  take(bytes);
  return bytes.size();
}

void IncomingMessage::finish_if_done() {
  if (matched_ && offset_ == task_.destination.size()) peer_.finish_incoming(sequence_, {});  // destroys this
}

Status EarlyMessage::begin_frame(const FrameHeader& header) {
  if (!eager_ || header.offset != received_ || header.payload_bytes == 0 || header.payload_bytes > shape_.bytes() - received_)
    return {Errc::protocol_error, "bytes of a message that was not accepted"};
  in_frame_ = true;
  return {};
}

std::size_t EarlyMessage::consume(ConstBytes bytes) {
  received_ += bytes.size();
  if (!refused_) bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return bytes.size();
}

void EarlyMessage::frame_ended() {
  in_frame_ = false;
  if (!refused_)
    peer_.on_early_bytes(sequence_);  // may destroy this
  else if (received_ == shape_.bytes())
    peer_.drop_early(sequence_);  // destroys this
}

bool EarlyMessage::refuse() {
  refused_ = true;
  bytes_ = {};
  release();
  return !eager_ || received_ == shape_.bytes();
}

void EarlyMessage::release() { peer_.session().release_early(std::exchange(kept_, {})); }

}  // namespace ringlet
