#include "sim/clockwork.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::sim {

std::uint32_t Clockwork::add_node() {
  nodes_.emplace_back();
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

bool Clockwork::admits(std::uint32_t node, const Event& event) {
  Node& state = nodes_[node];
  if (state.state == State::frozen) state.held.push_back(event);
  return state.state == State::running;
}

void Clockwork::stop(std::uint32_t node) {
  nodes_[node].state = State::stopped;
  nodes_[node].held.clear();
}

void Clockwork::freeze(std::uint32_t node) {
  if (running(node)) nodes_[node].state = State::frozen;
}

void Clockwork::resume(std::uint32_t node) {
  if (nodes_[node].state != State::frozen) return;
  nodes_[node].state = State::running;
  for (Event event : std::exchange(nodes_[node].held, {})) {
    event.at = now_;
    queue_.push(event);
  }
}

void Clockwork::defer(std::uint32_t node, Task task) {
  std::vector<Task>& deferred = nodes_[node].deferred;
  deferred.push_back(std::move(task));
  if (deferred.size() == 1) schedule(now_ + loop_delay(), EventKind::deferred, node);
}

TimerId Clockwork::after(std::uint32_t node, Duration delay, Task task) {
  std::uint32_t index = static_cast<std::uint32_t>(timers_.size());
  if (free_timers_.empty()) {
    timers_.emplace_back();
  } else {
    index = free_timers_.back();
    free_timers_.pop_back();
  }
  Timer& timer = timers_[index];
  timer.task = std::move(task);
  timer.node = node;
  schedule(now_ + std::max(delay, Duration{}), EventKind::timer, index, timer.generation);
  return (static_cast<TimerId>(timer.generation) << 32) | (index + 1);
}

void Clockwork::cancel(TimerId id) {
  const auto index = static_cast<std::uint32_t>(id) - 1;
  if (index >= timers_.size() || timers_[index].generation != id >> 32) return;
  const Task dropped = retire(index);
  // Cancelled timers are removed now and then, so that long timeouts, most of which are cancelled, do not fill the queue.
  if (++stale_timers_ > 64 + queue_.size() / 2) {
    queue_.remove_if([this](const Event& event) { return event.kind == EventKind::timer && timer_is_stale(event); });
    stale_timers_ = 0;
  }
}

bool Clockwork::timer_is_stale(const Event& event) const { return timers_[event.index].generation != event.generation; }

void Clockwork::skip_stale_timer() { stale_timers_ -= stale_timers_ > 0 ? 1 : 0; }

void Clockwork::run_timer(const Event& event) {
  const std::uint32_t node = timers_[event.index].node;
  if (node != kNoNode && !admits(node, event)) return;
  trace(event.index);
  const Task task = retire(event.index);
  task();
}

void Clockwork::run_deferred(const Event& event) {
  if (!admits(event.index, event)) return;
  for (const Task& task : std::exchange(nodes_[event.index].deferred, {})) task();
}

void Clockwork::drop_tasks() {
  // The destructor of a task may add further tasks.
  for (Node& node : nodes_) {
    while (!node.deferred.empty()) std::exchange(node.deferred, {}).clear();
  }
  for (std::size_t index = 0; index < timers_.size(); ++index) const Task dropped = std::exchange(timers_[index].task, nullptr);
}

/// Frees the timer's slot before its task runs or is destroyed, because both may set timers.
Task Clockwork::retire(std::uint32_t index) {
  Timer& timer = timers_[index];
  ++timer.generation;
  free_timers_.push_back(index);
  return std::exchange(timer.task, nullptr);
}

}  // namespace ringlet::sim
