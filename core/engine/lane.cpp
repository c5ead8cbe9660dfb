#include "core/engine/lane.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/engine/stream_engine.hpp"

namespace ringlet {

void Lane::start(const PeerSteps& steps, std::uint64_t sequence, ConstBytes call_record) {
  steps_ = steps;
  call_record_ = call_record;
  sequence_ = sequence;
  session_ = &group_.session(steps.peer);
  called_ = call_given_ = without_peer_ = false;
  early_ = {};
  next_send_ = frames_out_ = next_receive_ = 0;
  send_offset_ = receive_offset_ = 0;
  session_->mark_ready(*this);
}

void Lane::end() {
  if (early_.record_bytes > 0) window_.defer_release(sequence_, std::exchange(early_, {}));
}

void Lane::withdraw() {
  if (session_ != nullptr) std::exchange(session_, nullptr)->withdraw(*this);
}

void Lane::on_call() {
  called_ = true;
  window_.give_back(early_);
  session_->give_back_early(std::exchange(early_, {}));
  session_->forget_waiting(*this);
  session_->mark_ready(*this);
}

bool Lane::finish_without_peer() {
  const bool only_call_out = steps_.send_count == 0 || data_left();
  if (!receives_done() || !only_call_out) return false;
  without_peer_ = true;
  frames_out_ = 0;
  return true;
}

// --- sending ---

void Lane::wake_if_sendable() {
  if (without_peer_) return;
  if (!call_given_ || sendable()) session_->mark_ready(*this);
}

std::optional<std::size_t> Lane::sendable() const {
  if (next_send_ == steps_.send_count) return std::nullopt;
  const Send& next = send(next_send_);
  const RunningPlan::Prefix source = plan_.progress(next.after);
  if (next.from.bytes == 0) return source.done && frame_room() ? std::optional<std::size_t>(0) : std::nullopt;
  const std::size_t element = plan_.element_bytes();
  const std::size_t most = std::min(group_.options().segment_bytes, plan_.steps().segment_bytes);
  const std::size_t segment = std::max(most / element, std::size_t{1}) * element;
  const std::size_t ready = (source.done ? next.from.bytes : std::min(source.bytes, next.from.bytes)) - send_offset_;
  const std::size_t left = next.from.bytes - send_offset_;
  if (ready < left && ready < segment) return std::nullopt;
  std::size_t bytes = std::min(ready, segment);
  if (!called_) {
    bytes = std::min(bytes, frame_room().value_or(0));
    bytes -= bytes % plan_.element_bytes();
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

std::optional<std::size_t> Lane::frame_room() const {
  if (called_) return SIZE_MAX;
  const EarlyCost room = session_->early_room();
  if (room.record_bytes < EarlyCost::kFrameBytes) return std::nullopt;
  const auto left = [](std::size_t limit, std::size_t taken) { return limit - std::min(limit, taken); };
  return std::min(
      {left(group_.options().eager_bytes, early_.payload_bytes), left(window_.room(), EarlyCost::kFrameBytes), room.payload_bytes});
}

void Lane::take_early(const EarlyCost& cost) {
  window_.take(cost);
  early_ += cost;
}

std::optional<OutgoingFrame> Lane::next_frame() {
  FrameHeader header;
  header.group = group_.members().group_id(steps_.peer);
  header.stream = stream_;
  header.sequence = sequence_;
  if (!call_given_) return call_frame(header);
  const auto bytes = sendable();
  if (!bytes) return std::nullopt;
  if (!called_) {
    const EarlyCost cost{*bytes, EarlyCost::kFrameBytes};
    session_->take_early(cost);
    take_early(cost);
  }
  const Region& from = send(next_send_).from;
  header.kind = FrameKind::data;
  header.payload_bytes = static_cast<std::uint32_t>(*bytes);
  header.transfer = next_send_;
  header.offset = send_offset_;
  const OutgoingFrame frame{header, {plan_.readable(from) + send_offset_, *bytes}, plan_.steps().reduces_in_caches};
  ++frames_out_;
  send_offset_ += *bytes;
  if (send_offset_ == from.bytes) {
    ++next_send_;
    send_offset_ = 0;
  }
  return frame;
}

std::optional<OutgoingFrame> Lane::call_frame(FrameHeader header) {
  if (steps_.call_with_first_send && !plan_.progress(send(0).after).done) return std::nullopt;
  if (!called_) {
    if (window_.room() < call_cost().record_bytes || !session_->take_early_record(*this, call_cost())) return std::nullopt;
    take_early(call_cost());
  }
  call_given_ = true;
  ++frames_out_;
  header.kind = FrameKind::call;
  header.payload_bytes = static_cast<std::uint32_t>(call_record_.size());
  return OutgoingFrame{header, call_record_};
}

void Lane::frame_sent(const FrameHeader&) {
  --frames_out_;
  if (sends_left()) engine_.advance();
}

std::size_t Lane::sent_bytes() const {
  std::size_t bytes = send_offset_;
  for (std::uint32_t i = 0; i < next_send_; ++i) bytes += send(i).from.bytes;
  return bytes;
}

std::size_t Lane::bytes_to_send() const {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < steps_.send_count; ++i) bytes += send(i).from.bytes;
  return bytes;
}

// --- receiving ---

Status Lane::begin_frame(const FrameHeader& header) {
  const auto refuse = [&](const std::string& why) {
    return Status{Errc::protocol_error, "data of " + describe(plan_.call()) + " that does not fit: " + why};
  };
  if (!called_) return refuse("its call has not come");
  if (receives_done()) return refuse("all of it has already come");
  if (header.transfer != next_receive_)
    return refuse("transfer " + std::to_string(header.transfer) + " instead of " + std::to_string(next_receive_));
  if (header.offset != receive_offset_)
    return refuse("offset " + std::to_string(header.offset) + " instead of " + std::to_string(receive_offset_));
  const std::size_t left = receive(next_receive_).into.bytes - receive_offset_;
  if (header.payload_bytes > left)
    return refuse(std::to_string(header.payload_bytes) + " bytes where " + std::to_string(left) + " are due");
  if (header.payload_bytes == 0 && left > 0) return refuse("an empty frame");
  if (header.payload_bytes % plan_.element_bytes() != 0) return refuse("half an element");
  return {};
}

Bytes Lane::direct() {
  const Receive& current = receive(next_receive_);
  if (current.verb != Verb::copy) return {};
  return {plan_.writable(current.into) + receive_offset_, current.into.bytes - receive_offset_};
}

std::size_t Lane::consume(ConstBytes bytes) {
  const Receive& current = receive(next_receive_);
  if (current.verb == Verb::copy) {
    std::memcpy(plan_.writable(current.into) + receive_offset_, bytes.data(), bytes.size());
  } else {
    bytes = bytes.first(bytes.size() - bytes.size() % plan_.element_bytes());
    if (bytes.empty()) return 0;
    plan_.reduce_received(current, receive_offset_, bytes);
  }
  received_piece(bytes.size());
  return bytes.size();
}

void Lane::received_piece(std::size_t bytes) {
  receive_offset_ += bytes;
  plan_.set_received(steps_.first_receive + next_receive_, receive_offset_);
  if (receive_offset_ < receive(next_receive_).into.bytes) engine_.advance();
}

void Lane::frame_ended() {
  if (receive_offset_ == receive(next_receive_).into.bytes) {
    plan_.set_done(steps_.first_receive + next_receive_);
    ++next_receive_;
    receive_offset_ = 0;
  }
  engine_.advance();
}

std::size_t Lane::received_bytes() const {
  std::size_t bytes = receive_offset_;
  for (std::uint32_t i = 0; i < next_receive_; ++i) bytes += receive(i).into.bytes;
  return bytes;
}

std::size_t Lane::bytes_to_receive() const {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < steps_.receive_count; ++i) bytes += receive(i).into.bytes;
  return bytes;
}

}  // namespace ringlet
