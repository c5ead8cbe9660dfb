#include "wasm/cpp/browser_loop.hpp"

#include <algorithm>
#include <cmath>

#include "wasm/cpp/imports.hpp"

namespace ringlet::browser {

namespace {

Instant read_clock() { return {static_cast<std::int64_t>(ringlet_now() * 1e6)}; }

}  // namespace

Instant BrowserLoop::now() const { return in_turn_ ? now_ : read_clock(); }

void BrowserLoop::defer(Task task) {
  deferred_.push_back(std::move(task));
  ask_for_turn();
}

TimerId BrowserLoop::after(Duration delay, Task task) {
  const TimerId id = ++last_timer_;
  const std::int64_t deadline = (now() + std::max(delay, Duration{})).nanoseconds;
  timers_.emplace(TimerKey{deadline, id}, std::move(task));
  deadlines_.emplace(id, deadline);
  if (!in_turn_) arm_timer();
  return id;
}

void BrowserLoop::cancel(TimerId id) {
  const auto found = deadlines_.find(id);
  if (found == deadlines_.end()) return;
  timers_.erase({found->second, id});
  deadlines_.erase(found);
  // A timer of the host that fires for nothing does no harm, but it would keep a program in Node alive.
  if (!in_turn_) arm_timer();
}

void BrowserLoop::wake(std::shared_ptr<Flushed> one) {
  if (one->woken) return;
  one->woken = true;
  woken_.push_back(std::move(one));
  ask_for_turn();
}

void BrowserLoop::ask_for_turn() {
  if (in_turn_ || turn_asked_) return;
  turn_asked_ = true;
  ringlet_turn_soon();
}

void BrowserLoop::on_timer() {
  armed_for_ = -1;
  turn([this] { run_due_timers(); });
}

void BrowserLoop::on_turn() {
  turn_asked_ = false;
  turn([] {});
}

void BrowserLoop::run_due_timers() {
  // Timers that a task adds run in a later turn, even with no delay.
  std::vector<TimerId> due;
  for (const auto& [key, task] : timers_) {
    if (key.first > now_.nanoseconds) break;
    due.push_back(key.second);
  }
  for (const TimerId id : due) {
    const auto found = deadlines_.find(id);
    if (found == deadlines_.end()) continue;
    auto node = timers_.extract({found->second, id});
    deadlines_.erase(found);
    node.mapped()();
  }
}

void BrowserLoop::begin() {
  now_ = read_clock();
  in_turn_ = true;
}

void BrowserLoop::end() {
  while (!deferred_.empty() || !woken_.empty()) {
    while (!deferred_.empty()) {
      const Task task = std::move(deferred_.front());
      deferred_.pop_front();
      task();
    }
    for (const auto& one : std::exchange(woken_, {})) {
      one->woken = false;
      one->flush();
    }
  }
  in_turn_ = false;
  arm_timer();
}

void BrowserLoop::arm_timer() {
  const std::int64_t wanted = timers_.empty() ? -1 : timers_.begin()->first.first;
  if (wanted == armed_for_) return;
  if (armed_for_ >= 0) ringlet_clear_timer();
  armed_for_ = wanted;
  if (wanted < 0) return;
  // Hosts count in whole milliseconds, with a limit of about 24 days.
  constexpr double kLongest = 2e9;
  ringlet_set_timer(std::clamp(std::ceil(static_cast<double>(wanted - read_clock().nanoseconds) / 1e6), 0.0, kLongest));
}

}  // namespace ringlet::browser
