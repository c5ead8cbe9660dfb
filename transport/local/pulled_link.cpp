#include "transport/local/pulled_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringlet::local {

namespace {

constexpr std::size_t kBufferBytes = 64 << 10;
/// From here on bytes of a data record are received straight into their place.
constexpr std::size_t kDirectBytes = 4 << 10;
/// Records that may wait when the user is asked for more, so that an answer leaves together with the next batch.
constexpr std::size_t kLeftOverBytes = 256;
/// A peer that reads what it is answered has at most one answer under way.
constexpr int kMaxUnsentAnswers = 16;

std::size_t total(std::span<const Bytes> parts) {
  std::size_t bytes = 0;
  for (const Bytes part : parts) bytes += part.size();
  return bytes;
}

}  // namespace

class PulledLink::Watch {
 public:
  explicit Watch(const PulledLink& link) : gone_(link.gone_) {}
  bool gone() const { return *gone_; }

 private:
  const std::shared_ptr<bool> gone_;
};

PulledLink::PulledLink(std::unique_ptr<Link> inner, PeerMemory& memory, std::unique_ptr<Mark> mark, const PeerMark& peer,
                       std::size_t pull_bytes)
    : inner_(std::move(inner)),
      memory_(memory),
      mark_(std::move(mark)),
      peer_(peer),
      peer_name_(inner_->peer_name()),
      outbox_(pull_bytes),
      buffer_(kBufferBytes) {}

PulledLink::~PulledLink() {
  *gone_ = true;
  end_lending();
}

void PulledLink::start(LinkUser& user) {
  user_ = &user;
  inner_->start(*this);
}

void PulledLink::wake() {
  woken_ = true;
  if (user_ != nullptr) inner_->wake();
}

void PulledLink::finish_sending() {
  finish_requested_ = true;
  wake();
}

std::size_t PulledLink::recall() {
  const std::size_t kept = user_ != nullptr ? outbox_.keep() : 0;
  if (kept > 0) end_lending();
  return kept;
}

// What a peer reads from now on counts for nothing.
void PulledLink::end_lending() {
  mark_->epoch.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// --- sending ---

std::span<const ConstBytes> PulledLink::to_send() {
  while (true) {
    if (outbox_.unsent().size() <= kLeftOverBytes && !outbox_.batch_under_way() && !end_sent_ && !ask_user()) return {};
    answered_ = false;
    unsent_ = outbox_.unsent();
    if (!unsent_.empty()) return {&unsent_, 1};
    // Receiving comes second: otherwise the peer would have nothing to read until this side has read all, and the two would take turns.
    if (!stopped_ || !resume()) return {};
    // Still: the user has no room, unless an answer lets sending go first once more.
    if (stopped_ && !answered_) return {};
  }
}

bool PulledLink::ask_user() {
  const Watch watch(*this);
  woken_ = false;
  const auto parts = user_->to_send();
  if (watch.gone()) return false;
  const std::size_t bytes = outbox_.announce(parts, mark_->epoch.load(std::memory_order_relaxed));
  if (bytes == 0) {
    // Woken inside the very to_send() that had nothing: the inner link asks again.
    if (!finish_requested_ || woken_) return true;
    end_sent_ = true;
    outbox_.put({.kind = RecordKind::end});
    end_if_both_have();
  } else if (outbox_.awaits_answer() && inner_ended_) {
    // Nobody will answer.
    fail({Errc::peer_lost, "the connection to " + peer_name_ + " was closed by the other side"});
    return false;
  }
  return !watch.gone();
}

// The inner link's end takes the answers with it, so it waits for both directions.
void PulledLink::end_if_both_have() {
  if (end_sent_ && peer_ended_) inner_->finish_sending();
}

void PulledLink::sent(std::size_t bytes) {
  const std::size_t left = outbox_.left(bytes);
  if (outbox_.unsent().empty()) unsent_answers_ = 0;
  const Watch watch(*this);
  if (left > 0) user_->sent(left);
}

// --- receiving ---

std::span<const Bytes> PulledLink::to_receive() {
  if (stopped_ && (!resume() || stopped_)) return {};
  const Watch watch(*this);
  if (begin_ == end_) begin_ = end_ = 0;
  room_parts_ = direct_bytes_ = 0;
  if (incoming_.left >= kDirectBytes && begin_ == end_ && !skipping_) {
    const std::size_t bytes = ask_for_room(incoming_.left);
    if (watch.gone()) return {};
    stopped_ = bytes == 0;
    if (stopped_) return {};
    direct_bytes_ = bytes;
    if (bytes < incoming_.left) return {room_.data(), room_parts_};
  } else if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  room_[room_parts_++] = Bytes(buffer_).subspan(end_);
  return {room_.data(), room_parts_};
}

/// The user may have room again, or what the peer waits for has left.
bool PulledLink::resume() {
  const Watch watch(*this);
  stopped_ = answered_ = false;
  parse();
  return !watch.gone();
}

/// Puts the user's room for at most so many bytes into room_; returns how many it is.
std::size_t PulledLink::ask_for_room(std::size_t most) {
  const Watch watch(*this);
  const auto parts = user_->to_receive();
  if (watch.gone()) return 0;
  room_parts_ = 0;
  std::size_t bytes = 0;
  for (const Bytes part : parts.first(std::min<std::size_t>(parts.size(), 2))) {
    room_[room_parts_++] = part.first(std::min(part.size(), most - bytes));
    bytes += room_[room_parts_ - 1].size();
  }
  return bytes;
}

void PulledLink::received(std::size_t bytes) {
  const Watch watch(*this);
  const std::size_t placed = std::min(bytes, std::exchange(direct_bytes_, 0));
  end_ += bytes - placed;
  if (placed > 0) {
    incoming_.left -= placed;
    position_ += placed;
    user_->received(placed);
    if (watch.gone()) return;
  }
  parse();
}

bool PulledLink::parse() {
  while (true) {
    if (incoming_.left > 0) {
      const bool pulled = incoming_.record.kind != RecordKind::data;
      if (pulled && answered_) {
        stopped_ = true;
        return false;
      }
      if (pulled ? !take_pulled() : !take_data()) return false;
      if (incoming_.left > 0) return true;
      continue;
    }
    const std::byte* next = buffer_.data() + begin_;
    if (end_ - begin_ < kShortRecordBytes) return true;
    const std::size_t bytes = record_bytes(next);
    if (bytes == 0) return break_protocol("a record of a kind that is not known");
    if (end_ - begin_ < bytes) return true;
    begin_ += bytes;
    if (!on_record(decode_record(next))) return false;
  }
}

bool PulledLink::on_record(const Record& record) {
  switch (record.kind) {
    case RecordKind::data:
    case RecordKind::pull:
    case RecordKind::last_pull:
      if (peer_ended_) return break_protocol("bytes behind its end");
      if (record.length == 0 || record.length > kMaxRecordLength) return break_protocol("a record of an impossible length");
      // While skipping, only the bytes in the stream itself have to be passed over.
      if (!skipping_ || record.kind == RecordKind::data) incoming_ = {record, record.length};
      return true;
    case RecordKind::taken:
      return on_answer(outbox_.on_taken(record.first));
    case RecordKind::unreadable:
      return on_answer(outbox_.on_unreadable(record.first));
    case RecordKind::restart:
      if (!std::exchange(skipping_, false)) return break_protocol("a restart of what was not interrupted");
      return true;
    case RecordKind::end:
      return on_end();
  }
  return true;
}

bool PulledLink::on_answer(std::optional<std::size_t> left) {
  const Watch watch(*this);
  if (!left) return break_protocol("an answer to what was not asked");
  if (*left > 0) user_->sent(*left);
  if (watch.gone()) return false;
  answered_ = true;
  inner_->wake();
  return true;
}

bool PulledLink::on_end() {
  const Watch watch(*this);
  if (peer_ended_ || skipping_) return break_protocol("its end out of place");
  peer_ended_ = true;
  user_->receive_ended();
  if (watch.gone()) return false;
  end_if_both_have();
  return true;
}

bool PulledLink::take_data() {
  const Watch watch(*this);
  while (incoming_.left > 0 && begin_ < end_) {
    std::size_t bytes = std::min(incoming_.left, end_ - begin_);
    if (!skipping_) {
      bytes = ask_for_room(bytes);
      if (watch.gone()) return false;
      stopped_ = bytes == 0;
      if (stopped_) return false;
      std::size_t from = begin_;
      for (const Bytes part : std::span(room_).first(room_parts_)) {
        if (!part.empty()) std::memcpy(part.data(), buffer_.data() + from, part.size());
        from += part.size();
      }
      position_ += bytes;
    }
    begin_ += bytes;
    incoming_.left -= bytes;
    if (!skipping_) user_->received(bytes);
    if (watch.gone()) return false;
  }
  return true;
}

bool PulledLink::take_pulled() {
  const Watch watch(*this);
  while (incoming_.left > 0) {
    const std::size_t bytes = ask_for_room(incoming_.left);
    if (watch.gone()) return false;
    stopped_ = bytes == 0;
    if (stopped_) return false;
    if (!read_peer(bytes)) {
      skipping_ = true;
      incoming_.left = 0;
      return answer(RecordKind::unreadable);
    }
    incoming_.record.first += bytes;
    incoming_.left -= bytes;
    position_ += bytes;
    user_->received(bytes);
    if (watch.gone()) return false;
  }
  return incoming_.record.kind == RecordKind::pull || answer(RecordKind::taken);
}

/// Whether what now stands in room_ was lent until all of it was read.
bool PulledLink::read_peer(std::size_t bytes) {
  std::array<std::byte, kMarkHeadBytes> seen;
  const auto room = std::span<const Bytes>(room_).first(room_parts_);
  if (total(room) != bytes || !memory_.read(peer_.process, incoming_.record.first, room, peer_.address, seen)) return false;
  std::uint64_t epoch = 0;
  std::memcpy(&epoch, seen.data() + sizeof(MarkWord), sizeof epoch);
  return std::equal(peer_.word.begin(), peer_.word.end(), seen.begin()) && epoch == incoming_.record.second;
}

bool PulledLink::answer(RecordKind kind) {
  if (++unsent_answers_ > kMaxUnsentAnswers) return break_protocol("more than it takes answers to");
  outbox_.put({.kind = kind, .first = position_});
  inner_->wake();
  return true;
}

void PulledLink::receive_ended() {
  const Watch watch(*this);
  inner_ended_ = true;
  if (outbox_.awaits_answer()) return fail({Errc::peer_lost, "the connection to " + peer_name_ + " was closed by the other side"});
  if (!std::exchange(peer_ended_, true)) user_->receive_ended();
  if (!watch.gone()) end_if_both_have();
}

// --- the end ---

bool PulledLink::break_protocol(const char* what) {
  fail({Errc::protocol_error, peer_name_ + " sent " + what});
  return false;
}

void PulledLink::fail(const Status& status) {
  inner_.reset();
  link_failed(status);
}

void PulledLink::link_failed(const Status& status) {
  end_lending();
  *gone_ = true;
  std::exchange(user_, nullptr)->link_failed(status);
}

}  // namespace ringlet::local
