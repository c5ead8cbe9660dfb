#include <algorithm>

#include "core/engine/stream_engine.hpp"

// How a StreamEngine describes its operations, in errors and to other ranks.
namespace ringlet {

namespace {

/// A RankState message names at most this many ranks that an operation waits for.
constexpr std::size_t kMaxToldRanks = 16;

}  // namespace

std::optional<Pending> StreamEngine::pending() const {
  if (!running_) return std::nullopt;
  return Pending{nullptr, id_, sequence_, {deadline_.nanoseconds - current_.timeout.nanoseconds}};
}

int StreamEngine::awaited() const {
  if (!running_) return -1;
  int found = -1;
  for (const PeerSteps& steps : plan_.steps().peers) {
    const Lane& part = lane(steps.peer);
    if (part.done()) continue;
    if (!part.called()) return steps.peer;
    if (found < 0 || (lane(found).receives_done() && !part.receives_done())) found = steps.peer;
  }
  return found;
}

std::string StreamEngine::waiting_text() const {
  std::string text;
  for (const PeerSteps& steps : plan_.steps().peers) {
    const Lane& part = lane(steps.peer);
    if (part.done()) continue;
    text += (text.empty() ? "waiting for " : ", ") + group_.members().name_of(steps.peer);
    if (!part.called())
      text += steps.call_with_first_send ? " (has sent nothing yet)" : " (has not called it)";
    else if (part.receives_done())
      text += " (does not take what is sent to it)";
    else
      text += " (sent " + std::to_string(part.received_bytes()) + " of " + std::to_string(part.bytes_to_receive()) + " bytes)";
  }
  return text;
}

Status StreamEngine::timeout(int late, const std::string& what_it_does) const {
  const Membership& members = group_.members();
  const std::string text = group_.operation_name(id_, sequence_) + ", " + describe(current_.call) + ", was not done after " +
                           std::to_string(current_.timeout.whole_milliseconds()) + " ms: " + waiting_text();
  const int peer = awaited();
  if (late < 0 || (late == peer && !lane(peer).may_wait_itself())) return {Errc::timed_out, text, peer < 0 ? -1 : members.world_rank(peer)};
  return {Errc::timed_out, text + "; " + members.name_of(late) + " " + what_it_does, members.world_rank(late)};
}

void StreamEngine::add_progress_to(wire::OperationState& state) const {
  const auto add_awaited = [&](int peer) { state.waits_for.push_back(static_cast<std::uint32_t>(group_.members().world_rank(peer))); };
  const int first = awaited();
  if (first >= 0) add_awaited(first);
  for (const PeerSteps& steps : plan_.steps().peers) {
    const Lane& part = lane(steps.peer);
    state.received += part.received_bytes();
    state.to_receive += part.bytes_to_receive();
    state.sent += part.sent_bytes();
    state.to_send += part.bytes_to_send();
    if (!part.done() && steps.peer != first && state.waits_for.size() < kMaxToldRanks) add_awaited(steps.peer);
  }
}

wire::OperationState StreamEngine::state(Instant now) const {
  // Between two operations the stream is in the next one, which starts in this turn of the loop.
  wire::OperationState state;
  state.call = describe(running_ ? current_.call : waiting_.front().call);
  state.number = sequence_;
  state.stream = id_;
  state.group = group_.members().suffix();
  if (!running_) return state;
  state.milliseconds = static_cast<std::uint64_t>((now - pending()->started).whole_milliseconds());
  add_progress_to(state);
  return state;
}

void StreamEngine::add_to(wire::RankState& rank, Instant now) const {
  if (!idle()) rank.running.push_back(state(now));
  add_ended(rank, sequence_, now - ended_at_, [&] {
    wire::OperationState last;
    last.call = describe(past_call(sequence_ - 1));
    last.number = sequence_ - 1;
    last.stream = id_;
    last.group = group_.members().suffix();
    last.milliseconds = static_cast<std::uint64_t>((now - ended_at_).whole_milliseconds());
    return last;
  });
}

}  // namespace ringlet
