#include "native/loop_driver.hpp"

#include <sched.h>

#include <chrono>
#include <new>

namespace ringlet::native {

namespace {

/// A caller polls this long for the next event before it sleeps, because waking up costs more than most waits last.
constexpr std::int64_t kPollNanoseconds = 50'000;
/// Whoever keeps the core for so long after a yield is no rank that polls, or adds what has come, but has other work. Among such programs a
/// thread that sleeps is given the core at once when it is woken, and one that yields waits for its turn; so callers sleep at once for a
/// while.
constexpr std::int64_t kLongYieldNanoseconds = 1'000'000;
constexpr Duration kBusy = Duration::milliseconds(20);
/// The helper takes the loop over once no caller has used it for this long.
constexpr Duration kIdle = Duration::milliseconds(5);
constexpr Duration kInterruptionInterval = Duration::milliseconds(50);

Instant clock_now() {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

}  // namespace

LoopDriver::LoopDriver(bool helper) {
  if (helper) helper_ = std::thread([this] { help(); });
}

LoopDriver::~LoopDriver() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  helper_wakes_.notify_all();
  loop_.wake();
  if (helper_.joinable()) helper_.join();
}

bool LoopDriver::acquire(const DoneFlag* done, std::optional<Instant> deadline) {
  // This load and the store in set() are sequentially consistent: a caller that has counted itself as waiting either sees `done` or is
  // notified by set().
  const auto is_done = [&] { return done != nullptr && done->set_.load(std::memory_order_seq_cst); };
  std::unique_lock lock(mutex_);
  ++uses_;
  if (owner_ != Owner::none) {
    ++waiting_callers_;
    bool in_time = true;
    while (owner_ != Owner::none && !is_done() && in_time) {
      if (owner_ == Owner::helper) loop_.wake();
      if (!deadline)
        callers_.wait(lock);
      else
        in_time = callers_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline->nanoseconds))) ==
                  std::cv_status::no_timeout;
    }
    --waiting_callers_;
    if (owner_ != Owner::none) return false;
  }
  owner_ = Owner::caller;
  return true;
}

void LoopDriver::take_from_helper(std::unique_lock<std::mutex>& lock) {
  if (owner_ != Owner::helper) return;
  ++waiting_callers_;
  while (owner_ == Owner::helper) {
    loop_.wake();
    callers_.wait(lock);
  }
  --waiting_callers_;
}

bool LoopDriver::acquire_from_helper() {
  std::unique_lock lock(mutex_);
  ++uses_;
  take_from_helper(lock);
  if (owner_ == Owner::caller) return false;
  owner_ = Owner::caller;
  return true;
}

void LoopDriver::release(Next next) {
  bool tell_helper;
  bool tell_callers;
  {
    const std::lock_guard lock(mutex_);
    owner_ = Owner::none;
    tell_callers = waiting_callers_ > 0;
    tell_helper = !tell_callers && ((background_ > 0 && next == Next::helper) || helper_dozes_);
  }
  if (tell_callers) callers_.notify_all();
  if (tell_helper) helper_wakes_.notify_one();
}

void LoopDriver::run_in_background(Task start, Next next) {
  check();
  {
    std::unique_lock lock(mutex_);
    ++uses_;
    if (next == Next::caller) take_from_helper(lock);
    if (owner_ != Owner::none) {
      loop_.post(std::move(start));
      ++background_;
      return;
    }
    owner_ = Owner::caller;
  }
  ++background_;
  turn([&] { start(); });
  release(next);
  check();
}

void LoopDriver::give_up(std::exception_ptr failure) noexcept {
  if (is_inherited()) return;
  giving_up_ = true;
  loop_.wake();
  acquire(nullptr);
  if (!broken_) break_down(std::move(failure));
  release();
}

void LoopDriver::break_down(std::exception_ptr failure) noexcept {
  failure_ = std::move(failure);
  loop_.cut_off();
  broken_ = true;
  give_calls(nullptr);
}

void LoopDriver::set(DoneFlag& done) {
  done.set_.store(true, std::memory_order_seq_cst);
  if (call_count_.load() > 0) give_calls(&done);
  if (waiting_callers_.load() == 0) return;
  // Another thread may wait for this operation while this thread turns the loop for its own one.
  const std::lock_guard lock(mutex_);
  callers_.notify_all();
}

void LoopDriver::when_done(const DoneFlag& done, std::function<void()> call) {
  process_.check();
  start_dispatcher();
  Calls calls;
  calls.push_back(std::move(call));
  {
    const std::lock_guard lock(calls_mutex_);
    Calls& of_flag = calls_[&done];
    of_flag.splice(of_flag.end(), calls);
    call_count_ = calls_.size();
  }
  // set() has either seen the count, or been before this.
  if (broken_)
    give_calls(nullptr);
  else if (done.set_.load(std::memory_order_seq_cst))
    give_calls(&done);
}

/// Of one flag, or of all.
void LoopDriver::give_calls(const DoneFlag* done) noexcept {
  const std::lock_guard lock(calls_mutex_);
  if (done == nullptr) {
    for (auto& [flag, calls] : calls_) dispatch(std::move(calls));
    calls_.clear();
  } else if (const auto found = calls_.find(done); found != calls_.end()) {
    dispatch(std::move(found->second));
    calls_.erase(found);
  }
  call_count_ = calls_.size();
}

bool LoopDriver::wait(const DoneFlag& done, std::optional<Duration> timeout, const Interruption& interruption) noexcept {
  if (done.is_set()) return true;
  if (is_inherited()) return false;
  std::optional<Instant> deadline;
  if (timeout) deadline = clock_now() + *timeout;
  wait_until(done, deadline, interruption, false);
  return done.is_set();
}

void LoopDriver::wait_until(const DoneFlag& done, std::optional<Instant> deadline, const Interruption& interruption,
                            bool holds_loop) noexcept {
  bool may_ask = interruption.is_wanted != nullptr;
  for (;;) {
    std::optional<Instant> end = deadline;
    if (may_ask) {
      const Instant slice = clock_now() + kInterruptionInterval;
      if (!deadline || slice < *deadline) end = slice;
    }
    if (holds_loop || acquire(&done, end)) {
      guard([&] { turn_until(done, end); });
      release();
      holds_loop = false;
    }
    if (done.is_set() || broken_ || end == deadline) return;
    // Asked without the loop: the answer may need a lock whose holder waits for the loop.
    if (!interruption.is_wanted()) continue;
    may_ask = false;
    try {
      loop_.post(interruption.end);
    } catch (...) {
      give_up(std::current_exception());
    }
  }
}

void LoopDriver::turn_until(const DoneFlag& done, std::optional<Instant> deadline) {
  const simd::FloatEnvironment environment;
  Instant last_event = clock_now();
  // The helper never gets a loop that callers use all the time, and these may never have to wait.
  if (last_event - last_turn_ >= kIdle) {
    last_turn_ = last_event;
    loop_.poll();
  }
  TimerId alarm = 0;
  while (!done.is_set()) {
    if (giving_up_) throw std::bad_alloc();
    if (loop_.poll()) {
      last_event = clock_now();
      continue;
    }
    const Instant now = clock_now();
    if (deadline && now >= *deadline) break;
    if ((now - last_event).nanoseconds < kPollNanoseconds && now >= busy_until_) {
      // With more ranks than cores, the rank that this one waits for may need this core.
      ::sched_yield();
      const Instant back = clock_now();
      if ((back - now).nanoseconds >= kLongYieldNanoseconds) busy_until_ = back + kBusy;
      continue;
    }
    if (deadline && alarm == 0) alarm = loop_.after(*deadline - now, [&alarm] { alarm = 0; });
    loop_.wait();
    last_event = clock_now();
  }
  if (alarm != 0) loop_.cancel(alarm);
}

void LoopDriver::help() {
  const simd::FloatEnvironment environment;
  std::unique_lock lock(mutex_);
  std::uint64_t uses_seen = uses_;
  while (!stopping_ && !broken_) {
    const bool free = owner_ == Owner::none && waiting_callers_ == 0;
    if (free && (background_ > 0 || uses_ == uses_seen)) {
      help_while_alone(lock);
      uses_seen = uses_;
      continue;
    }
    if (owner_ == Owner::caller && uses_ == uses_seen) {
      // A caller has held the loop all this time, and notifies the helper when it releases the loop.
      helper_dozes_ = true;
      helper_wakes_.wait(lock);
      helper_dozes_ = false;
      continue;
    }
    uses_seen = uses_;
    helper_wakes_.wait_for(lock, std::chrono::nanoseconds(kIdle.nanoseconds));
  }
}

void LoopDriver::help_while_alone(std::unique_lock<std::mutex>& lock) {
  owner_ = Owner::helper;
  lock.unlock();
  guard([&] {
    loop_.flush();
    while (waiting_callers_.load() == 0 && !stopping_) loop_.wait();
  });
  lock.lock();
  owner_ = Owner::none;
  callers_.notify_all();
}

}  // namespace ringlet::native
