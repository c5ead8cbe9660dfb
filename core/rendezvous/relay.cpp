#include "core/rendezvous/relay.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

std::span<const Bytes> Relay::Buffer::room() {
  const std::size_t end = (begin_ + used_) % kBufferBytes;
  const std::size_t free = kBufferBytes - used_;
  const std::size_t first = std::min(free, kBufferBytes - end);
  room_ = {Bytes(bytes_).subspan(end, first), Bytes(bytes_).first(free - first)};
  return {room_.data(), free == 0 ? 0u : free == first ? 1u : 2u};
}

std::span<const ConstBytes> Relay::Buffer::content() {
  const std::size_t first = std::min(used_, kBufferBytes - begin_);
  content_ = {ConstBytes(bytes_).subspan(begin_, first), ConstBytes(bytes_).first(used_ - first)};
  return {content_.data(), used_ == 0 ? 0u : used_ == first ? 1u : 2u};
}

void Relay::Buffer::drained(std::size_t bytes) {
  used_ -= bytes;
  // An empty buffer starts at its beginning again, so that its free room is in one part.
  begin_ = used_ == 0 ? 0 : (begin_ + bytes) % kBufferBytes;
}

void Relay::Side::sent(std::size_t bytes) {
  Side& other = relay->sides_[1 - index];
  const bool was_full = other.incoming.full();
  other.incoming.drained(bytes);
  if (was_full && other.link) other.link->wake();
  relay->finish_if_over();
}

std::span<const Bytes> Relay::Side::to_receive() {
  if (discarding) incoming.clear();
  return incoming.room();
}

void Relay::Side::received(std::size_t bytes) {
  if (discarding) return;
  incoming.filled(bytes);
  if (const auto& other = relay->sides_[1 - index].link) other->wake();
}

void Relay::Side::receive_ended() { relay->end(index); }

void Relay::Side::link_failed(const Status&) {
  link.reset();
  relay->end(index);
}

Relay::Relay(EventLoop& loop, std::function<void()> on_over) : loop_(loop), on_over_(std::move(on_over)) {
  for (std::size_t side = 0; side < 2; ++side) {
    sides_[side].relay = this;
    sides_[side].index = side;
  }
}

void Relay::attach(std::size_t side, std::unique_ptr<Link> link) {
  Side& self = sides_[side];
  self.link = std::move(link);
  self.link->start(self);
  self.link->wake();
  const Side& other = sides_[1 - side];
  if (!other.ended) return;
  self.discarding = other.link == nullptr;
  self.link->finish_sending();
}

void Relay::end(std::size_t side) {
  Side& self = sides_[side];
  Side& other = sides_[1 - side];
  self.ended = true;
  if (other.link) {
    // Where this side's link has broken, the other side's bytes can no longer be delivered.
    if (!self.link) other.discarding = true;
    other.link->finish_sending();
    other.link->wake();
  }
  finish_if_over();
}

void Relay::finish_if_over() {
  if (!on_over_) return;
  for (std::size_t side = 0; side < 2; ++side) {
    const bool undelivered = sides_[1 - side].link && !sides_[side].incoming.empty();
    if (!sides_[side].ended || undelivered) return;
  }
  loop_.defer(guard_.wrap(std::exchange(on_over_, nullptr)));
}

}  // namespace ringlet
