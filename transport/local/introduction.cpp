#include "transport/local/introduction.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/wire/frame.hpp"
#include "transport/local/ring_memory.hpp"

namespace ringlet::local {

namespace {

// The bits of a verdict.
constexpr std::uint64_t kReadsMark = 1;
constexpr std::uint64_t kSharesRings = 2;

}  // namespace

Introduction::Introduction(std::unique_ptr<Link> link, LinkSide side, PeerMemory* memory, bool with_rings, const MarkWord& challenge,
                           Done done)
    : side_(side), memory_(memory), with_rings_(with_rings), challenge_(challenge), done_(std::move(done)) {
  found_.link = std::move(link);
  found_.mark = std::make_unique<Mark>();
  const std::string own = found_.link->own_name(), peer = found_.link->peer_name();
  const std::string ends = side == LinkSide::dialler ? own + " " + peer : peer + " " + own;
  if (own.empty() || ends.size() > found_.mark->ends.size()) memory_ = nullptr;
  std::copy_n(ends.begin(), std::min(ends.size(), found_.mark->ends.size()), found_.mark->ends.begin());
  with_rings_ = with_rings_ && memory_ != nullptr;
  if (with_rings_ && side == LinkSide::dialler) found_.rings = make_shared_memory(kRingMemoryBytes);
}

void Introduction::begin() {
  found_.link->start(*this);
  expect(kGreetingBytes);
  if (side_ == LinkSide::dialler) greet();
}

void Introduction::expect(std::size_t bytes) {
  expected_ = bytes;
  missing_ = Bytes(in_).first(bytes);
}

// The greeting consists of the process number (u64; 0: this side takes no part), the mark's address (u64), the random word, the descriptor
// of the shared memory plus 1 (u32; 0: none) and the size of a ring in it (u32).
void Introduction::greet() {
  detail::store_le<std::uint64_t>(out_.data(), memory_ != nullptr ? memory_->own_process() : 0);
  detail::store_le<std::uint64_t>(out_.data() + 8, memory_ != nullptr ? reinterpret_cast<std::uintptr_t>(found_.mark.get()) : 0);
  std::copy(challenge_.begin(), challenge_.end(), out_.begin() + 16);
  detail::store_le<std::uint32_t>(out_.data() + 32, found_.rings ? static_cast<std::uint32_t>(found_.rings->descriptor()) + 1 : 0);
  detail::store_le<std::uint32_t>(out_.data() + 36, kRingBytes);
  unsent_ = out_;
  found_.link->wake();
}

// The verdict is one u64: kReadsMark and kSharesRings, or 0.
void Introduction::judge() {
  const Mark& own = *found_.mark;
  std::array<std::byte, kMarkHeadBytes> head{};
  std::array<char, sizeof own.ends> ends{};
  const Bytes into(head);
  readable_ = memory_ != nullptr && peer_takes_part_ &&
              memory_->read(found_.peer.process, found_.peer.address, {&into, 1}, found_.peer.address + kMarkHeadBytes,
                            std::as_writable_bytes(std::span(ends))) &&
              std::equal(challenge_.begin(), challenge_.end(), head.begin()) && ends == own.ends;
  const bool shares = side_ == LinkSide::acceptor && opens_rings();
  detail::store_le<std::uint64_t>(out_.data(), (readable_ ? kReadsMark : 0) | (shares ? kSharesRings : 0));
  unsent_ = ConstBytes(out_).first(kVerdictBytes);
  found_.link->wake();
}

/// Opens the dialler's shared memory, and returns whether it belongs to the process at the other end of this connection.
bool Introduction::opens_rings() {
  if (!with_rings_ || peer_descriptor_ == 0) return false;
  found_.rings = open_shared_memory(found_.peer.process, static_cast<int>(peer_descriptor_ - 1), kRingMemoryBytes);
  if (!found_.rings) return false;
  RingMemory& rings = ring_memory(*found_.rings);
  if (rings.acceptor_word == challenge_ && rings.ends == found_.mark->ends) {
    rings.dialler_word = found_.mark->word;
    return true;
  }
  found_.rings.reset();
  return false;
}

void Introduction::on_greeting() {
  found_.peer.process = detail::load_le<std::uint64_t>(in_.data());
  found_.peer.address = detail::load_le<std::uint64_t>(in_.data() + 8);
  found_.peer.word = challenge_;
  peer_takes_part_ = found_.peer.process != 0;
  std::copy_n(in_.begin() + 16, found_.mark->word.size(), found_.mark->word.begin());
  const bool fits = peer_takes_part_ && detail::load_le<std::uint32_t>(in_.data() + 36) == kRingBytes;
  peer_descriptor_ = fits ? detail::load_le<std::uint32_t>(in_.data() + 32) : 0;
  if (side_ == LinkSide::dialler && found_.rings) {
    RingMemory& rings = ring_memory(*found_.rings);
    rings.acceptor_word = found_.mark->word;
    rings.ends = found_.mark->ends;
  }
  if (side_ == LinkSide::acceptor)
    greet();
  else
    judge();
  expect(kVerdictBytes);
}

void Introduction::on_verdict() {
  const std::uint64_t verdict = detail::load_le<std::uint64_t>(in_.data());
  const bool peer_can_read = (verdict & kReadsMark) != 0;
  finished_ = true;
  if (side_ == LinkSide::acceptor) judge();
  found_.readable = peer_can_read && readable_;
  if (side_ == LinkSide::acceptor) return;
  // Where both sides differ about it, the peer has broken the protocol, and gets nothing that it could read.
  if ((verdict & kSharesRings) == 0 || !found_.rings)
    found_.rings.reset();
  else if (found_.rings->close_descriptor(); ring_memory(*found_.rings).dialler_word != challenge_)
    return give_up({Errc::protocol_error, found_.link->peer_name() + " says that it has opened memory that it has not opened"});
  finish();
}

std::span<const ConstBytes> Introduction::to_send() { return {&unsent_, unsent_.empty() ? 0U : 1U}; }

void Introduction::sent(std::size_t bytes) {
  unsent_ = unsent_.subspan(bytes);
  if (unsent_.empty() && finished_) finish();
}

std::span<const Bytes> Introduction::to_receive() { return {&missing_, missing_.empty() ? 0U : 1U}; }

void Introduction::received(std::size_t bytes) {
  missing_ = missing_.subspan(bytes);
  if (!missing_.empty()) return;
  if (expected_ == kGreetingBytes)
    on_greeting();
  else
    on_verdict();
}

void Introduction::receive_ended() {
  give_up({Errc::peer_lost, found_.link->peer_name() + " closed the connection before it had introduced itself"});
}

void Introduction::link_failed(const Status& status) { give_up(status); }

void Introduction::finish() {
  const Done done = std::move(done_);
  done(std::move(found_));
}

void Introduction::give_up(const Status& status) {
  const Done done = std::move(done_);
  found_.link.reset();
  done(status);
}

}  // namespace ringlet::local
