#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ports/event_loop.hpp"

namespace ringlet::browser {

/// An object that may have bytes to send at the end of the current turn.
class Flushed {
 public:
  virtual void flush() = 0;
  bool woken = false;  // it is in the loop's list

 protected:
  ~Flushed() = default;
};

/// The event loop on top of the host's: JavaScript calls it, the loop runs the event and everything that it causes, and returns. It never
/// waits.
class BrowserLoop final : public EventLoop {
 public:
  /// The time at the beginning of the current turn; between turns, the time of the call.
  Instant now() const override;
  void defer(Task task) override;
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId id) override;

  /// Makes the loop call flush() at the end of the current turn.
  void wake(std::shared_ptr<Flushed> one);

  /// Runs an event of the host: calls `event`, then everything that it has caused.
  template <class Event>
  void turn(Event&& event) {
    begin();
    event();
    end();
  }
  /// Called when the host's timer has fired.
  void on_timer();
  /// Called after ask_for_turn(), to run what was deferred between turns.
  void on_turn();

 private:
  using TimerKey = std::pair<std::int64_t, TimerId>;  // deadline first

  void begin();
  void end();
  /// Asks the host for a turn, if none is running and none was asked for.
  void ask_for_turn();
  void run_due_timers();
  void arm_timer();

  bool in_turn_ = false;
  bool turn_asked_ = false;
  Instant now_{};
  std::deque<Task> deferred_;
  std::vector<std::shared_ptr<Flushed>> woken_;
  std::map<TimerKey, Task> timers_;
  std::unordered_map<TimerId, std::int64_t> deadlines_;
  TimerId last_timer_ = 0;
  std::int64_t armed_for_ = -1;  // deadline that the host's timer is set for; -1: none
};

}  // namespace ringlet::browser
