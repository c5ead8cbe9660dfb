#include "core/engine/stream_queue.hpp"

// What a stream tells of itself.
namespace ringlet {

wire::RankState::Arrival StreamQueue::arrival(std::uint64_t sequence) const {
  using Arrival = wire::RankState::Arrival;
  if (sequence < sequence_) return Arrival::done;
  return running_ && sequence == sequence_ ? Arrival::arrived : Arrival::not_arrived;
}

std::optional<Underway> StreamQueue::underway() const {
  if (!running_) return std::nullopt;
  return Underway{sequence_, {deadline_.nanoseconds - current_.timeout.nanoseconds}};
}

wire::OperationState StreamQueue::state(Instant now) const {
  wire::OperationState state;
  state.call = describe(current_.call);
  state.number = sequence_;
  state.stream = id_;
  state.group = host_.members().suffix();
  state.milliseconds = static_cast<std::uint64_t>((now - underway()->started).whole_milliseconds());
  collective_.describe_progress(state);
  return state;
}

wire::OperationState StreamQueue::last_ended(Instant now) const {
  wire::OperationState state;
  state.call = describe(history_[(sequence_ - 1) % history_.size()]);
  state.number = sequence_ - 1;
  state.stream = id_;
  state.group = host_.members().suffix();
  state.milliseconds = static_cast<std::uint64_t>((now - ended_at_).whole_milliseconds());
  return state;
}

void StreamQueue::add_to(Activity& activity, Instant now) const {
  if (running_) activity.running.push_back(state(now));
  if (sequence_ == 0) return;
  activity.operations += sequence_;
  activity.add_ended(ended_at_, [&] { return last_ended(now); });
}

}  // namespace ringlet
