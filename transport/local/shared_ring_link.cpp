#include "transport/local/shared_ring_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringlet::local {

namespace {

// These bound one link's share of a turn.
constexpr int kSendsPerTurn = 16;
constexpr int kReceivesPerTurn = 16;

constexpr std::array<std::byte, 1> kBell{std::byte{1}};

std::size_t index_of(LinkSide side) { return side == LinkSide::dialler ? 0 : 1; }
std::size_t other(std::size_t index) { return 1 - index; }

std::byte* ring_bytes(SharedMemory& memory, std::size_t index) { return memory.bytes().data() + kRingMemoryHeadBytes + index * kRingBytes; }

/// Calls `copy(place, offset, bytes)` for the one or two pieces of a ring in which `bytes` bytes from `position` on stand.
template <class Copy>
void for_ring_pieces(std::uint64_t position, std::size_t bytes, Copy copy) {
  const auto place = static_cast<std::size_t>(position & (kRingBytes - 1));
  const std::size_t first = std::min(bytes, kRingBytes - place);
  copy(place, std::size_t{0}, first);
  if (bytes > first) copy(std::size_t{0}, first, bytes - first);
}

}  // namespace

SharedRingLink::SharedRingLink(std::unique_ptr<Link> inner, std::unique_ptr<SharedMemory> memory, LinkSide side, PollSources& sources)
    : inner_(std::move(inner)),
      memory_(std::move(memory)),
      incoming_(ring_memory(*memory_).rings[other(index_of(side))]),
      outgoing_(ring_memory(*memory_).rings[index_of(side)]),
      own_awaits_(ring_memory(*memory_).sides[index_of(side)].awaits),
      peer_awaits_(ring_memory(*memory_).sides[other(index_of(side))].awaits),
      incoming_bytes_(ring_bytes(*memory_, other(index_of(side)))),
      outgoing_bytes_(ring_bytes(*memory_, index_of(side))),
      sources_(sources),
      peer_name_(inner_->peer_name()) {}

SharedRingLink::~SharedRingLink() { sources_.remove_source(*this); }

void SharedRingLink::start(LinkUser& user) {
  if (started_ && user_ == nullptr) return;
  user_ = &user;
  stopped_ = peer_ended_ = false;
  if (std::exchange(started_, true)) return;
  inner_->receive_seldom();
  inner_->start(*this);
  sources_.add_source(*this);
}

// The inner link asks this one for bytes soon, after the current callback, and so lets it ask its own user.
void SharedRingLink::wake() {
  woken_ = true;
  if (user_ == nullptr) return;
  if (inner_failed_) stopped_ = false;  // poll() goes on
  // Sending looks at woken_ itself, but does not ask for room.
  if (!sending_ || stopped_) inner_->wake();
}

void SharedRingLink::finish_sending() {
  finish_requested_ = true;
  wake();
}

// --- the loop ---

bool SharedRingLink::poll() {
  if (user_ == nullptr) return false;
  const Moved received = stopped_ ? Moved::none : receive();
  if (received == Moved::gone) return true;
  if (waits_in_vain()) return fail_as_closed() == Moved::gone;
  const Moved sent = waits_for_room_ && room() > 0 ? send() : Moved::none;
  return received != Moved::none || sent != Moved::none;
}

bool SharedRingLink::prepare_to_block() {
  if (user_ == nullptr) return true;
  const auto awaits = static_cast<std::uint32_t>(stopped_ ? Awaits::nothing : Awaits::bytes) |
                      static_cast<std::uint32_t>(waits_for_room_ ? Awaits::room : Awaits::nothing);
  own_awaits_.store(awaits, std::memory_order_relaxed);
  // With the fence in tell_peer(): either the peer sees that this side waits, or this side sees what the peer has done before it looked.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool ends = !peer_ended_ && (inner_ended_ || incoming_.ended.load(std::memory_order_acquire) != 0);
  return (stopped_ || (!bytes_wait() && !ends)) && (!waits_for_room_ || (room() == 0 && !waits_in_vain()));
}

void SharedRingLink::awake() { own_awaits_.store(0, std::memory_order_relaxed); }

void SharedRingLink::tell_peer(Awaits what) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((peer_awaits_.load(std::memory_order_relaxed) & static_cast<std::uint32_t>(what)) == 0) return;
  peer_awaits_.store(0, std::memory_order_relaxed);
  bell_ = kBell;
  if (inner_ && !sending_) inner_->wake();
}

// --- sending ---

std::span<const ConstBytes> SharedRingLink::to_send() {
  // The user may have room again, too.
  if (std::exchange(stopped_, false) && receive() == Moved::gone) return {};
  if (!waits_for_room_ && send() == Moved::gone) return {};
  return {&bell_, bell_.empty() ? 0U : 1U};
}

void SharedRingLink::sent(std::size_t) { bell_ = {}; }

SharedRingLink::Moved SharedRingLink::send() {
  if (user_ == nullptr || end_sent_) return Moved::none;
  const AliveGuard::Watch watch = guard_.watch();
  Moved moved = Moved::none;
  sending_ = true;
  waits_for_room_ = false;
  bool more = true;
  for (int round = 0; more && round < kSendsPerTurn; ++round) {
    woken_ = more = false;
    const auto parts = user_->to_send();
    if (!watch.alive()) return Moved::gone;
    if (std::all_of(parts.begin(), parts.end(), [](ConstBytes part) { return part.empty(); })) {
      if (!finish_requested_ || woken_) break;
      end_sent_ = true;
      outgoing_.ended.store(1, std::memory_order_release);
      tell_peer(Awaits::bytes);
      end_if_both_have();
      moved = Moved::some;
      break;
    }
    if (inner_ended_) return fail_as_closed();
    const std::size_t free = room();
    if (free > kRingBytes) return fail({Errc::protocol_error, peer_name_ + " read bytes that were not there"});
    const std::size_t bytes = put(parts, free);
    waits_for_room_ = bytes == free;
    if (bytes == 0) break;
    moved = Moved::some;
    written_ += bytes;
    outgoing_.written.store(written_, std::memory_order_release);
    tell_peer(Awaits::bytes);
    user_->sent(bytes);
    if (!watch.alive()) return Moved::gone;
    more = !waits_for_room_;
  }
  sending_ = false;
  if (more || (woken_ && !waits_for_room_) || !bell_.empty()) inner_->wake();
  return moved;
}

std::size_t SharedRingLink::put(std::span<const ConstBytes> parts, std::size_t room) {
  std::size_t bytes = 0;
  for (const ConstBytes part : parts) {
    const ConstBytes fits = part.first(std::min(part.size(), room - bytes));
    for_ring_pieces(written_ + bytes, fits.size(), [&](std::size_t place, std::size_t offset, std::size_t count) {
      if (count > 0) std::memcpy(outgoing_bytes_ + place, fits.data() + offset, count);
    });
    bytes += fits.size();
    if (bytes == room) break;
  }
  return bytes;
}

// --- receiving ---

SharedRingLink::Moved SharedRingLink::receive() {
  const AliveGuard::Watch watch = guard_.watch();
  Moved moved = Moved::none;
  for (int round = 0; round < kReceivesPerTurn; ++round) {
    // The end is looked at first, since bytes may come before it.
    const bool ended = incoming_.ended.load(std::memory_order_acquire) != 0 || inner_ended_;
    const auto waiting = static_cast<std::size_t>(incoming_.written.load(std::memory_order_acquire) - read_);
    if (waiting == 0 && ended && !peer_ended_) return end_of_peer();
    if (waiting == 0) break;
    if (waiting > kRingBytes) return fail({Errc::protocol_error, peer_name_ + " wrote more than there was room for"});
    if (peer_ended_) return fail({Errc::protocol_error, peer_name_ + " wrote bytes behind its end"});
    const auto parts = user_->to_receive();
    if (!watch.alive()) return Moved::gone;
    const std::size_t bytes = take(parts, waiting);
    stopped_ = bytes == 0;
    if (stopped_) break;
    moved = Moved::some;
    read_ += bytes;
    incoming_.read.store(read_, std::memory_order_release);
    tell_peer(Awaits::room);
    user_->received(bytes);
    if (!watch.alive()) return Moved::gone;
  }
  return moved;
}

std::size_t SharedRingLink::take(std::span<const Bytes> parts, std::size_t bytes) {
  std::size_t taken = 0;
  for (const Bytes part : parts) {
    const std::size_t fits = std::min(part.size(), bytes - taken);
    for_ring_pieces(read_ + taken, fits, [&](std::size_t place, std::size_t offset, std::size_t count) {
      if (count > 0) std::memcpy(part.data() + offset, incoming_bytes_ + place, count);
    });
    taken += fits;
  }
  return taken;
}

// Bytes over the inner link say only that there is something to do.
std::span<const Bytes> SharedRingLink::to_receive() { return {&rung_room_, 1}; }

void SharedRingLink::received(std::size_t) { poll(); }

// --- the end ---

SharedRingLink::Moved SharedRingLink::end_of_peer() {
  const AliveGuard::Watch watch = guard_.watch();
  peer_ended_ = true;
  user_->receive_ended();
  if (!watch.alive()) return Moved::gone;
  end_if_both_have();
  return Moved::some;
}

// The inner link carries what wakes the peer for both directions, so it ends with the second one.
void SharedRingLink::end_if_both_have() {
  if (end_sent_ && peer_ended_) inner_->finish_sending();
}

void SharedRingLink::receive_ended() {
  inner_ended_ = true;
  poll();
}

SharedRingLink::Moved SharedRingLink::fail_as_closed() {
  return fail({Errc::peer_lost, "the connection to " + peer_name_ + " was closed by the other side"});
}

SharedRingLink::Moved SharedRingLink::fail(const Status& status) {
  inner_.reset();
  guard_.end();
  std::exchange(user_, nullptr)->link_failed(status);
  return Moved::gone;
}

// What the peer has written before it went is still read, since it may tell why.
void SharedRingLink::link_failed(const Status& status) {
  const Status reason = status;
  const std::uint64_t limit = read_ + kRingBytes;
  while (!stopped_ && bytes_wait() && read_ < limit)
    if (receive() == Moved::gone) return;
  const bool ends = !peer_ended_ && !stopped_ && !bytes_wait() && incoming_.ended.load(std::memory_order_acquire) != 0;
  if (ends && end_of_peer() == Moved::gone) return;
  // A peer that goes behind both ends may leave a byte unread that would have woken it, which breaks the inner link. What it wrote before
  // its end is still there for a user that has no room now.
  if (end_sent_ && (peer_ended_ || (stopped_ && incoming_.ended.load(std::memory_order_acquire) != 0))) {
    inner_ended_ = inner_failed_ = true;
    return;
  }
  guard_.end();
  std::exchange(user_, nullptr)->link_failed(reason);
}

}  // namespace ringlet::local
