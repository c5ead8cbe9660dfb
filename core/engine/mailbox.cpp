#include "core/engine/mailbox.hpp"

#include <algorithm>
#include <utility>

#include "core/engine/group_engine.hpp"

namespace ringlet {

Mailbox::Mailbox(std::uint16_t stream, GroupContext& group) : group_(group), stream_(stream) {
  for (int peer = 0; peer < group.options().size; ++peer) peers_.emplace_back(group, stream, peer, [this] { match_any(); });
}

void Mailbox::note_start(MessageTask& task) const {
  // Messages that form a group are not the program's.
  if (stream_ >= GroupEngine::kFirstCreationStream) return;
  if (const Trace* trace = usable(group_.options().session.trace)) task.since = trace->now();
}

void Mailbox::send(MessageTask task) {
  note_start(task);
  PeerMessages& peer = with(task.peer);
  peer.send(std::move(task));
}

void Mailbox::receive(MessageTask task) {
  note_start(task);
  if (task.peer == kAnySource) {
    any_.push_back({next_any_++, group_.loop().now(), std::move(task)});
    return match_any();
  }
  PeerMessages& peer = with(task.peer);
  peer.receive(std::move(task));
}

// --- receives from any rank ---

/// The next rank in turn of which a message may be taken.
std::optional<int> Mailbox::next_offering() const {
  for (int step = 1; step <= size(); ++step)
    if (const int peer = (last_source_ + step) % size(); with(peer).offers_next()) return peer;
  return std::nullopt;
}

bool Mailbox::can_still_come() const {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != group_.options().rank && group_.departure(peer) == GroupContext::Departure::none) return true;
  return false;
}

void Mailbox::match_any() {
  while (!any_.empty()) {
    const auto source = next_offering();
    if (!source) break;
    AnyReceive receive = std::move(any_.front());
    any_.pop_front();
    last_source_ = *source;
    receive.task.peer = *source;
    if (receive.task.sender != nullptr) *receive.task.sender = *source;
    receive.task.timeout = receive.deadline() - group_.loop().now();
    with(*source).receive(std::move(receive.task));
  }
  if (any_.empty() || can_still_come() || !group_.failure().ok()) return;
  group_.fail({Errc::peer_lost, "all others left the group" + group_.members().suffix() + " while a message of stream " +
                                    std::to_string(stream_) + " was to come from any of them"});
}

void Mailbox::on_peer_left(int peer) {
  with(peer).on_peer_left();
  if (group_.failure().ok()) match_any();
}

wire::OperationState Mailbox::state_of_any(Duration time) const {
  wire::OperationState state;
  state.call = "recv(" + describe(any_.front().task.shape) + ") from any rank";
  state.number = any_.front().sequence;
  state.stream = stream_;
  state.group = group_.members().suffix();
  state.milliseconds = static_cast<std::uint64_t>(time.whole_milliseconds());
  state.to_receive = any_.front().task.shape.bytes();
  for (int peer = 0; peer < size(); ++peer)
    if (peer != group_.options().rank && group_.departure(peer) == GroupContext::Departure::none)
      state.waits_for.push_back(static_cast<std::uint32_t>(group_.members().world_rank(peer)));
  return state;
}

// --- all messages ---

Status Mailbox::check_deadlines(Instant now) const {
  for (const PeerMessages& peer : peers_)
    if (Status status = peer.check_deadlines(now); !status.ok()) return status;
  for (const AnyReceive& receive : any_)
    if (now >= receive.deadline())
      return {Errc::timed_out, "recv(" + describe(receive.task.shape) + ") of stream " + std::to_string(stream_) +
                                   group_.members().suffix() + " from any rank: no message came within " +
                                   std::to_string(receive.task.timeout.whole_milliseconds()) + " ms"};
  return {};
}

std::optional<Pending> Mailbox::pending() const {
  std::optional<Pending> oldest;
  for (const PeerMessages& peer : peers_)
    if (const auto pending = peer.pending(); pending && (!oldest || pending->started < oldest->started)) oldest = pending;
  if (!any_.empty() && (!oldest || any_.front().started < oldest->started))
    oldest = Pending{nullptr, stream_, any_.front().sequence, any_.front().started, Pending::kAnyPeer, false};
  return oldest;
}

wire::OperationState Mailbox::state(const Pending& message, Instant now) const {
  return message.peer == Pending::kAnyPeer ? state_of_any(now - message.started) : with(message.peer).state(message, now);
}

void Mailbox::add_to(wire::RankState& rank, Instant now) const {
  if (const auto oldest = pending()) rank.running.push_back(state(*oldest, now));
  for (const PeerMessages& peer : peers_) peer.add_ended_to(rank, now);
}

void Mailbox::fail_all(const Status& status) {
  for (PeerMessages& peer : peers_) peer.fail_all(status);
  for (AnyReceive& receive : std::exchange(any_, {})) {
    group_.record_message(stream_, receive.sequence, false, receive.task, true);
    group_.complete(std::move(receive.task.completion), status);
  }
}

bool Mailbox::idle() const {
  return any_.empty() && std::all_of(peers_.begin(), peers_.end(), [](const PeerMessages& peer) { return peer.idle(); });
}

}  // namespace ringlet
