#include "transport/local/peer_memory_link.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::local {

namespace {

/// The user is asked for more while at most this many bytes of records wait, so that an answer leaves together with the next batch.
constexpr std::size_t kLeftOverBytes = 256;
/// A peer that reads the answers sent to it has at most one answer under way; more than this many break the protocol.
constexpr int kMaxUnsentAnswers = 16;

}  // namespace

PeerMemoryLink::PeerMemoryLink(std::unique_ptr<Link> inner, PeerMemory& memory, std::unique_ptr<Mark> mark, const PeerMark& peer,
                               const PeerMemoryTuning& tuning, std::shared_ptr<Neighbours> neighbours)
    : inner_(std::move(inner)),
      memory_(memory),
      mark_(std::move(mark)),
      peer_(peer),
      peer_name_(inner_->peer_name()),
      direct_bytes_(tuning.direct_bytes),
      on_own_processors_(tuning.on_own_processors),
      on_shared_processors_(tuning.on_shared_processors),
      for_caches_on_shared_processors_(tuning.for_caches_on_shared_processors),
      outbox_(tuning.pull_bytes),
      inbox_(tuning.buffer_bytes) {
  if (neighbours) place_.emplace(std::move(neighbours));
}

PeerMemoryLink::~PeerMemoryLink() { end_lending(); }

void PeerMemoryLink::start(LinkUser& user) {
  user_ = &user;
  inner_->start(*this);
}

void PeerMemoryLink::wake() {
  woken_ = true;
  if (user_ != nullptr) inner_->wake();
}

void PeerMemoryLink::finish_sending() {
  finish_requested_ = true;
  wake();
}

std::size_t PeerMemoryLink::recall() {
  const std::size_t kept = user_ != nullptr ? outbox_.keep() : 0;
  if (kept > 0) end_lending();
  return kept;
}

// The peer compares the epoch after each read, so it discards whatever it reads from now on.
void PeerMemoryLink::end_lending() {
  mark_->epoch.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// --- sending ---

std::span<const ConstBytes> PeerMemoryLink::to_send() {
  while (true) {
    if (outbox_.unsent_record_bytes() <= kLeftOverBytes && !outbox_.batch_under_way() && !end_sent_ && !ask_user()) return {};
    answered_ = false;
    if (const auto unsent = outbox_.unsent(); !unsent.empty()) return unsent;
    // Receiving has its turn after sending. Otherwise the peer would have nothing to read until this side has read everything, and the two
    // sides would take turns.
    if (!stopped_ || !resume()) return {};
    // The user still has no room, unless sending goes first once more.
    if (stopped_ && !sending_goes_first()) return {};
  }
}

bool PeerMemoryLink::sending_goes_first() const { return answered_ || (woken_ && !outbox_.batch_under_way() && !end_sent_); }

const LentBatch& PeerMemoryLink::limits_of_batch() const {
  if (place_ && !place_->all().share_processors()) return on_own_processors_;
  return user_->sends_for_caches() ? for_caches_on_shared_processors_ : on_shared_processors_;
}

bool PeerMemoryLink::ask_user() {
  const AliveGuard::Watch watch = guard_.watch();
  woken_ = false;
  const auto parts = user_->to_send();
  if (!watch.alive()) return false;
  const std::size_t bytes = outbox_.announce(parts, mark_->epoch.load(std::memory_order_relaxed), limits_of_batch());
  if (bytes == 0) {
    // If wake() was called during the to_send() that returned nothing, the inner link asks again.
    if (!finish_requested_ || woken_) return true;
    end_sent_ = true;
    outbox_.put({.kind = RecordKind::end});
    end_if_both_have();
  } else if (outbox_.awaits_answer() && inner_ended_) {
    // The peer has closed the connection, so it will never answer this batch.
    fail({Errc::peer_lost, "the connection to " + peer_name_ + " was closed by the other side"});
    return false;
  }
  return watch.alive();
}

// Ending the inner link also ends the answers on it, so the link is ended only when both directions are finished.
void PeerMemoryLink::end_if_both_have() {
  if (end_sent_ && peer_ended_) inner_->finish_sending();
}

void PeerMemoryLink::sent(std::size_t bytes) {
  const std::size_t left = outbox_.left(bytes);
  sent_bytes_ += bytes;
  const AliveGuard::Watch watch = guard_.watch();
  if (left > 0) user_->sent(left);
}

// --- receiving ---

std::span<const Bytes> PeerMemoryLink::to_receive() {
  if (stopped_ && !resume()) return {};
  inner_stopped_ = stopped_;
  if (stopped_) return {};
  const AliveGuard::Watch watch = guard_.watch();
  inbox_.clear_room();
  if (incoming_.left < direct_bytes_ || !inbox_.empty() || skipping_) return inbox_.offer(true);
  const std::size_t bytes = ask_for_room(incoming_.left);
  if (!watch.alive()) return {};
  inner_stopped_ = stopped_ = bytes == 0;
  if (stopped_) return {};
  return inbox_.offer(bytes == incoming_.left);
}

/// Goes on with receiving: the user may have room again, or the bytes that the peer waits for have left. Returns false if this object was
/// destroyed.
bool PeerMemoryLink::resume() {
  const AliveGuard::Watch watch = guard_.watch();
  stopped_ = answered_ = false;
  parse();
  if (!watch.alive()) return false;
  // The inner link asks for room again only after a wake.
  if (!stopped_ && std::exchange(inner_stopped_, false)) inner_->wake();
  return true;
}

/// Asks the user for room for at most `max_bytes` bytes, and returns how many bytes the room has.
std::size_t PeerMemoryLink::ask_for_room(std::size_t max_bytes) {
  const AliveGuard::Watch watch = guard_.watch();
  const auto parts = user_->to_receive();
  return !watch.alive() ? 0 : inbox_.set_room(parts, max_bytes);
}

void PeerMemoryLink::received(std::size_t bytes) {
  const AliveGuard::Watch watch = guard_.watch();
  const std::size_t placed = inbox_.added(bytes);
  if (placed > 0) {
    incoming_.left -= placed;
    position_ += placed;
    user_->received(placed);
    if (!watch.alive()) return;
  }
  parse();
}

bool PeerMemoryLink::parse() {
  while (true) {
    if (incoming_.left > 0) {
      const bool pulled = incoming_.record.kind != RecordKind::data;
      if (pulled && sending_goes_first()) {
        stopped_ = true;
        return false;
      }
      if (pulled ? !take_pulled() : !take_data()) return false;
      if (incoming_.left > 0) return true;
      continue;
    }
    std::optional<Record> record;
    if (!inbox_.take_record(record)) return break_protocol("a record of a kind that is not known");
    if (!record) return true;
    if (!on_record(*record)) return false;
  }
}

bool PeerMemoryLink::on_record(const Record& record) {
  switch (record.kind) {
    case RecordKind::data:
    case RecordKind::pull:
    case RecordKind::last_pull:
      if (peer_ended_) return break_protocol("bytes behind its end");
      if (record.length == 0 || record.length > kMaxRecordLength) return break_protocol("a record of an impossible length");
      // While skipping, only data records have bytes in the stream that must be passed over.
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

bool PeerMemoryLink::on_answer(std::optional<std::size_t> left) {
  const AliveGuard::Watch watch = guard_.watch();
  if (!left) return break_protocol("an answer to what was not asked");
  if (*left > 0) user_->sent(*left);
  if (!watch.alive()) return false;
  answered_ = true;
  inner_->wake();
  return true;
}

bool PeerMemoryLink::on_end() {
  const AliveGuard::Watch watch = guard_.watch();
  if (peer_ended_ || skipping_) return break_protocol("its end out of place");
  peer_ended_ = true;
  user_->receive_ended();
  if (!watch.alive()) return false;
  end_if_both_have();
  return true;
}

bool PeerMemoryLink::take_data() {
  const AliveGuard::Watch watch = guard_.watch();
  while (incoming_.left > 0 && !inbox_.empty()) {
    std::size_t bytes = std::min(incoming_.left, inbox_.unread_bytes());
    if (skipping_) {
      inbox_.skip(bytes);
      incoming_.left -= bytes;
      continue;
    }
    bytes = ask_for_room(bytes);
    if (!watch.alive()) return false;
    stopped_ = bytes == 0;
    if (stopped_) return false;
    inbox_.copy_to_room();
    position_ += bytes;
    incoming_.left -= bytes;
    user_->received(bytes);
    if (!watch.alive()) return false;
  }
  return true;
}

bool PeerMemoryLink::take_pulled() {
  const AliveGuard::Watch watch = guard_.watch();
  while (incoming_.left > 0) {
    const std::size_t bytes = ask_for_room(incoming_.left);
    if (!watch.alive()) return false;
    stopped_ = bytes == 0;
    if (stopped_) return false;
    if (!inbox_.read_peer(memory_, peer_, incoming_.record)) {
      skipping_ = true;
      incoming_.left = 0;
      return answer(RecordKind::unreadable);
    }
    incoming_.record.first += bytes;
    incoming_.left -= bytes;
    position_ += bytes;
    user_->received(bytes);
    if (!watch.alive()) return false;
  }
  return incoming_.record.kind == RecordKind::pull || answer(RecordKind::taken);
}

bool PeerMemoryLink::answer(RecordKind kind) {
  if (sent_bytes_ >= answered_at_) unsent_answers_ = 0;
  if (++unsent_answers_ > kMaxUnsentAnswers) return break_protocol("more than it takes answers to");
  outbox_.put({.kind = kind, .first = position_});
  answered_at_ = sent_bytes_ + outbox_.unsent_bytes();
  inner_->wake();
  return true;
}

void PeerMemoryLink::receive_ended() {
  const AliveGuard::Watch watch = guard_.watch();
  inner_ended_ = true;
  if (outbox_.awaits_answer()) return fail({Errc::peer_lost, "the connection to " + peer_name_ + " was closed by the other side"});
  if (!std::exchange(peer_ended_, true)) user_->receive_ended();
  if (watch.alive()) end_if_both_have();
}

// --- the end ---

bool PeerMemoryLink::break_protocol(const char* what) {
  fail({Errc::protocol_error, peer_name_ + " sent " + what});
  return false;
}

void PeerMemoryLink::fail(const Status& status) {
  inner_.reset();
  link_failed(status);
}

void PeerMemoryLink::link_failed(const Status& status) {
  end_lending();
  guard_.end();
  std::exchange(user_, nullptr)->link_failed(status);
}

}  // namespace ringlet::local
