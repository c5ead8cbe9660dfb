#include "core/engine/stream_queue.hpp"

// What a stream tells of itself.
namespace ringlet {

std::optional<Pending> StreamQueue::pending() const {
  if (!running_) return std::nullopt;
  return Pending{nullptr, id_, sequence_, {deadline_.nanoseconds - current_.timeout.nanoseconds}};
}

wire::OperationState StreamQueue::state(Instant now) const {
  // Between two operations the stream is in the next one, which starts in this turn of the loop.
  const CollectiveTask& task = running_ ? current_ : waiting_.front();
  wire::OperationState state;
  state.call = describe(task.call);
  state.number = sequence_;
  state.stream = id_;
  state.group = group_.members().suffix();
  if (running_) state.milliseconds = static_cast<std::uint64_t>((now - pending()->started).whole_milliseconds());
  collective_.describe_progress(state);
  return state;
}

wire::OperationState StreamQueue::last_ended(Instant now) const {
  wire::OperationState state;
  state.call = describe(history_[(sequence_ - 1) % history_.size()]);
  state.number = sequence_ - 1;
  state.stream = id_;
  state.group = group_.members().suffix();
  state.milliseconds = static_cast<std::uint64_t>((now - ended_at_).whole_milliseconds());
  return state;
}

void StreamQueue::add_to(wire::RankState& rank, Instant now) const {
  if (!idle()) rank.running.push_back(state(now));
  add_ended(rank, sequence_, now - ended_at_, [&] { return last_ended(now); });
}

}  // namespace ringlet
