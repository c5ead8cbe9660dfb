#include "core/engine/mailbox.hpp"

#include <algorithm>
#include <utility>

namespace ringlet {

Mailbox::Mailbox(std::uint16_t stream, GroupContext& group) {
  for (int peer = 0; peer < group.options().size; ++peer) peers_.emplace_back(group, stream, peer);
}

void Mailbox::send(MessageTask task) {
  PeerMessages& peer = with(task.peer);
  peer.send(std::move(task));
}

void Mailbox::receive(MessageTask task) {
  PeerMessages& peer = with(task.peer);
  peer.receive(std::move(task));
}

Status Mailbox::check_deadlines(Instant now) const {
  for (const PeerMessages& peer : peers_)
    if (Status status = peer.check_deadlines(now); !status.ok()) return status;
  return {};
}

std::optional<Pending> Mailbox::pending() const {
  std::optional<Pending> oldest;
  for (const PeerMessages& peer : peers_)
    if (const auto pending = peer.pending(); pending && (!oldest || pending->started < oldest->started)) oldest = pending;
  return oldest;
}

wire::OperationState Mailbox::state(const Pending& message, Instant now) const {
  return peers_[static_cast<std::size_t>(message.peer)].state(message, now);
}

void Mailbox::add_to(wire::RankState& rank, Instant now) const {
  if (const auto oldest = pending()) rank.running.push_back(state(*oldest, now));
  for (const PeerMessages& peer : peers_) peer.add_ended_to(rank, now);
}

void Mailbox::fail_all(const Status& status) {
  for (PeerMessages& peer : peers_) peer.fail_all(status);
}

bool Mailbox::idle() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const PeerMessages& peer) { return peer.idle(); });
}

}  // namespace ringlet
