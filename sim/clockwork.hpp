#pragma once

#include <string>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "sim/event_queue.hpp"
#include "sim/sim_random.hpp"

namespace ringlet::sim {

inline constexpr std::uint32_t kNoNode = UINT32_MAX;

/// The virtual clock: events, timers, deferred tasks, and which nodes may run. Single-threaded.
class Clockwork {
 public:
  explicit Clockwork(const SimOptions& options) : random_(options.seed), loop_delay_(options.loop_delay) {}

  Instant now() const { return now_; }
  SimRandom& random() { return random_; }
  Duration loop_delay() { return random_.in(loop_delay_); }

  void schedule(Instant at, EventKind kind, std::uint32_t index, std::uint32_t generation = 0, std::size_t side = 0) {
    queue_.push({at, 0, index, generation, kind, static_cast<std::uint8_t>(side)});
  }
  bool idle() const { return queue_.empty(); }
  Instant next_instant() const { return queue_.top().at; }
  Event pop() { return queue_.pop(); }
  void advance(Instant to) { now_ = to; }

  std::uint32_t add_node();
  bool running(std::uint32_t node) const { return nodes_[node].state == State::running; }
  bool stopped(std::uint32_t node) const { return nodes_[node].state == State::stopped; }
  /// Whether the callback that `event` stands for may run on the node now. A frozen node keeps the event until it is resumed.
  bool admits(std::uint32_t node, const Event& event);
  void stop(std::uint32_t node);
  void freeze(std::uint32_t node);
  void resume(std::uint32_t node);

  void defer(std::uint32_t node, Task task);
  /// If `node` is kNoNode, the task runs whatever happens to the nodes.
  TimerId after(std::uint32_t node, Duration delay, Task task);
  void cancel(TimerId id);
  bool timer_is_stale(const Event& event) const;
  void skip_stale_timer();
  void run_timer(const Event& event);
  void run_deferred(const Event& event);
  /// Destroys all tasks without running them.
  void drop_tasks();

  void trace(std::uint64_t value) {
    trace_ = (trace_ ^ value) * 0x9fb21c651e98df25U;
    trace_ ^= trace_ >> 32;
  }
  std::uint64_t trace_hash() const { return trace_; }

 private:
  enum class State : std::uint8_t { running, frozen, stopped };
  struct Node {
    State state = State::running;
    std::vector<Task> deferred;
    std::vector<Event> held;
  };
  struct Timer {
    Task task;
    std::uint32_t node = kNoNode;
    std::uint32_t generation = 0;
  };
  Task retire(std::uint32_t index);

  Instant now_;
  EventQueue queue_;
  SimRandom random_;
  Range<Duration> loop_delay_;
  std::vector<Node> nodes_;
  std::vector<Timer> timers_;
  std::vector<std::uint32_t> free_timers_;
  std::size_t stale_timers_ = 0;  // events of cancelled timers still in the queue
  std::uint64_t trace_ = 0;
};

/// The clock as one node sees it.
class SimLoop final : public EventLoop {
 public:
  SimLoop(Clockwork& clock, std::uint32_t node) : clock_(clock), node_(node) {}
  Instant now() const override { return clock_.now(); }
  void defer(Task task) override { clock_.defer(node_, std::move(task)); }
  TimerId after(Duration delay, Task task) override { return clock_.after(node_, delay, std::move(task)); }
  void cancel(TimerId id) override { clock_.cancel(id); }

 private:
  Clockwork& clock_;
  std::uint32_t node_;
};

}  // namespace ringlet::sim
