#include "core/rendezvous/secure_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/rendezvous/key_schedule.hpp"
#include "core/wire/frame.hpp"

namespace ringlet {

namespace {

// Most links carry few bytes, so the memory for a long record is allocated when the first one comes.
constexpr std::size_t kSmallBuffer = 4 << 10;
constexpr std::size_t kMaxParts = 64;

}  // namespace

SecureLink::SecureLink(EventLoop& loop, std::unique_ptr<Link> inner, CipherSuite suite, std::unique_ptr<Cipher> sealing,
                       std::unique_ptr<Cipher> opening, const KeyLimits& limits)
    : loop_(loop),
      inner_(std::move(inner)),
      peer_name_(inner_->peer_name()),
      own_name_(inner_->own_name()),
      medium_(inner_->medium()),
      suite_(suite),
      limits_(limits),
      sealing_{std::move(sealing)},
      outgoing_(kSmallBuffer),
      opening_{std::move(opening)},
      buffer_(kSmallBuffer) {}

void SecureLink::start(LinkUser& user) {
  const bool first = std::exchange(user_, &user) == nullptr;
  end_told_ = false;
  if (first) return inner_->start(*this);
  if (stopped_ || peer_ended_) deliver_later();
}

void SecureLink::wake() {
  woken_ = true;
  if (user_ == nullptr) return;
  // The inner link does not know of the bytes that wait here, and may have no reason to call.
  if (stopped_) deliver_later();
  inner_->wake();
}

void SecureLink::finish_sending() {
  finish_requested_ = true;
  wake();
}

// --- sending ---

std::span<const ConstBytes> SecureLink::to_send() {
  if (unsent_.empty() && !seal_next()) return {};
  return {&unsent_, 1};
}

bool SecureLink::seal_next() {
  const AliveGuard::Watch watch = guard_.watch();
  if (end_sealed_) return false;
  LinkUser* asked = nullptr;
  std::span<const ConstBytes> parts;
  while (asked != user_) {
    asked = user_;
    woken_ = false;
    parts = asked->to_send();
    if (!watch.alive()) return false;
  }
  std::array<ConstBytes, kMaxParts> content;
  std::size_t count = 0, bytes = 0;
  for (const ConstBytes part : parts) {
    if (count == kMaxParts || bytes == kMaxRecordContent) break;
    if (part.empty()) continue;
    content[count] = part.first(std::min(part.size(), kMaxRecordContent - bytes));
    bytes += content[count++].size();
  }
  // Where the user has called wake() while its to_send() returned nothing, the inner link will ask again.
  if (bytes == 0 && (!finish_requested_ || woken_)) return false;
  end_sealed_ = bytes == 0;
  seal({content.data(), count}, bytes);
  if (bytes > 0) user_->sent(bytes);
  return watch.alive();
}

void SecureLink::seal(std::span<const ConstBytes> content, std::size_t bytes) {
  const std::size_t record_bytes = kRecordHeadBytes + bytes + Cipher::kTagBytes;
  if (outgoing_.size() < record_bytes) outgoing_.resize(kMaxRecordBytes);
  const Bytes record = Bytes(outgoing_).first(record_bytes);
  detail::store_le(record.data(), static_cast<std::uint32_t>(bytes));
  sealing_.cipher->seal(sealing_.records, record.first(kRecordHeadBytes), content, record.subspan(kRecordHeadBytes));
  count_record(sealing_, bytes);
  unsent_ = record;
}

void SecureLink::sent(std::size_t bytes) {
  unsent_ = unsent_.subspan(bytes);
  if (!unsent_.empty() || !end_sealed_) return;
  finish_if_both_have();
  deliver();
}

/// A WebSocket that is closed in one direction carries nothing in the other either, so the inner link is ended only when both directions
/// have ended.
void SecureLink::finish_if_both_have() {
  if (end_sealed_ && unsent_.empty() && peer_ended_) inner_->finish_sending();
}

// --- receiving ---

std::span<const Bytes> SecureLink::to_receive() {
  if (stopped_ || peer_ended_) return {};
  if (begin_ == end_) begin_ = end_ = 0;
  std::size_t record_bytes = kRecordHeadBytes;
  if (end_ - begin_ >= kRecordHeadBytes) record_bytes += detail::load_le<std::uint32_t>(buffer_.data() + begin_) + Cipher::kTagBytes;
  if (begin_ + record_bytes > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (record_bytes > buffer_.size()) buffer_.resize(2 * kMaxRecordBytes);
  }
  inner_room_ = Bytes(buffer_).subspan(end_);
  return {&inner_room_, 1};
}

void SecureLink::received(std::size_t bytes) {
  end_ += bytes;
  deliver();
}

void SecureLink::receive_ended() {
  inner_ended_ = true;
  deliver();
}

/// Used where the user itself has called this link, and so may not be called at once.
void SecureLink::deliver_later() {
  if (std::exchange(delivery_planned_, true)) return;
  loop_.defer(guard_.wrap([this] {
    const AliveGuard::Watch watch = guard_.watch();
    delivery_planned_ = stopped_ = false;
    deliver();
    if (watch.alive() && !stopped_) inner_->wake();
  }));
}

void SecureLink::deliver() {
  const AliveGuard::Watch watch = guard_.watch();
  while (!stopped_) {
    const bool more = !content_.empty() ? hand_on() : peer_ended_ ? tell_end() : open_next();
    if (!watch.alive() || !more) return;
  }
}

bool SecureLink::open_next() {
  const std::size_t available = end_ - begin_;
  std::size_t content_bytes = 0;
  if (available >= kRecordHeadBytes) content_bytes = detail::load_le<std::uint32_t>(buffer_.data() + begin_);
  if (content_bytes > kMaxRecordContent) {
    fail(Errc::protocol_error,
         "sent a record of " + std::to_string(content_bytes) + " bytes; at most " + std::to_string(kMaxRecordContent) + " are allowed");
    return false;
  }
  if (available < kRecordHeadBytes + content_bytes + Cipher::kTagBytes) {
    if (inner_ended_) fail(Errc::peer_lost, "closed the connection without announcing that: it was killed, or somebody on the way cut it");
    return false;
  }
  return open(content_bytes);
}

bool SecureLink::open(std::size_t content_bytes) {
  const AliveGuard::Watch watch = guard_.watch();
  LinkUser* const asked = user_;
  const std::size_t room = ask_for_room(std::max<std::size_t>(content_bytes, 1));
  if (!watch.alive()) return false;
  if (asked != user_) return true;
  stopped_ = room == 0;
  if (stopped_) return false;
  const Bytes record = Bytes(buffer_).subspan(begin_, kRecordHeadBytes + content_bytes + Cipher::kTagBytes);
  const Bytes sealed = record.subspan(kRecordHeadBytes);
  const Bytes in_place = sealed.first(content_bytes);
  const bool direct = content_bytes > 0 && room == content_bytes;
  const std::span<const Bytes> into = direct ? std::span<const Bytes>(room_).first(room_parts_) : std::span(&in_place, 1);
  begin_ += record.size();
  if (!opening_.cipher->open(opening_.records, record.first(kRecordHeadBytes), sealed, into)) {
    // The parts may be the memory of a caller's tensor, in which nothing is to stay that nobody has vouched for.
    for (const Bytes part : into) std::fill(part.begin(), part.end(), std::byte{});
    fail(Errc::protocol_error, "sent a record, number " + std::to_string(opening_.records) +
                                   ", that was changed on its way, or does not belong there; look for what alters traffic between the two");
    return false;
  }
  count_record(opening_, content_bytes);
  peer_ended_ = content_bytes == 0;
  if (peer_ended_) finish_if_both_have();
  if (direct)
    user_->received(content_bytes);
  else
    content_ = in_place;
  return true;
}

bool SecureLink::hand_on() {
  const AliveGuard::Watch watch = guard_.watch();
  LinkUser* const asked = user_;
  const std::size_t bytes = ask_for_room(content_.size());
  if (!watch.alive()) return false;
  if (asked != user_) return true;
  stopped_ = bytes == 0;
  if (stopped_) return false;
  for (const Bytes part : std::span(room_).first(room_parts_)) {
    if (!part.empty()) std::memcpy(part.data(), content_.data(), part.size());
    content_ = content_.subspan(part.size());
  }
  user_->received(bytes);
  return true;
}

std::size_t SecureLink::ask_for_room(std::size_t most) {
  const AliveGuard::Watch watch = guard_.watch();
  const auto parts = user_->to_receive();
  if (!watch.alive()) return 0;
  room_parts_ = 0;
  std::size_t bytes = 0;
  for (const Bytes part : parts.first(std::min(parts.size(), room_.size()))) {
    room_[room_parts_++] = part.first(std::min(part.size(), most - bytes));
    bytes += room_[room_parts_ - 1].size();
  }
  return bytes;
}

bool SecureLink::tell_end() {
  // A user that is finishing may destroy the link when it hears of the end, so its own bytes leave first.
  const bool held_back = finish_requested_ && !(end_sealed_ && unsent_.empty()) && !inner_ended_;
  if (!held_back && !std::exchange(end_told_, true)) user_->receive_ended();
  return false;
}

// --- keys ---

void SecureLink::count_record(Direction& direction, std::size_t content_bytes) const {
  ++direction.records;
  direction.key_bytes += content_bytes;
  if (++direction.key_records < limits_.records && direction.key_bytes < limits_.bytes) return;
  renew_key(*direction.cipher);
  direction.key_records = direction.key_bytes = 0;
}

// --- the end ---

void SecureLink::fail(Errc code, std::string text) {
  inner_.reset();
  link_failed({code, peer_name_ + " " + text});
}

void SecureLink::link_failed(const Status& status) {
  guard_.end();
  std::exchange(user_, nullptr)->link_failed(status);
}

}  // namespace ringlet
