#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "native/dispatcher.hpp"
#include "native/own_process.hpp"
#include "simd/kernels.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::native {

/// What a thread waits for. Only LoopDriver::set() sets it, so that no thread that waits is forgotten.
class DoneFlag {
 public:
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

 private:
  friend class LoopDriver;
  std::atomic<bool> set_{false};
};

/// How a thread that waits learns that it should not any more.
struct Interruption {
  /// Asked on the waiting thread, ten times a second at least; it may not throw. Empty: never.
  std::function<bool()> is_wanted{};
  /// Runs in the loop, once in a wait: makes sure that what is waited for is done soon. It may be done already, and the wait over.
  Task end{};
};

/// Decides which thread turns the loop; only one holds it at a time. A thread that waits for an operation turns the loop itself, so that a
/// short operation costs no switch of threads. While no caller waits, a helper thread turns it, so that operations go on while the program
/// computes, and heartbeats are answered. All members may be called from any thread.
///
/// Where a task throws (memory has run out), the driver is broken: the loop's sockets are closed, so that all peers are told, no task of it
/// runs any more, and all calls throw the same exception; those that wait end.
///
/// In a process that was forked from that of the driver all calls throw, and nothing waits. The driver may not be destroyed there.
class LoopDriver {
 public:
  /// `helper` says whether to start the helper thread.
  explicit LoopDriver(bool helper);
  ~LoopDriver();
  LoopDriver(const LoopDriver&) = delete;
  LoopDriver& operator=(const LoopDriver&) = delete;

  /// May be used only while holding the loop, except for post() and wake().
  UvLoop& loop() { return loop_; }

  /// The thread that is to turn the loop after a call.
  enum class Next { helper, caller };

  /// Runs `start` with the loop held; where another thread holds it at this moment, that thread is left to run `start`. What `start` begins
  /// goes on in the background until background_done() is called for it from the loop. Where the caller waits right after, the loop is
  /// taken from the helper, and the helper is not woken; it still takes the loop over if nobody does for a while.
  void run_in_background(Task start, Next next = Next::helper);
  void background_done() { --background_; }

  /// Wakes the threads that wait for `done`, which need not exist any more when this returns.
  void set(DoneFlag& done);

  /// Runs `start` with the loop held, then turns the loop until `done` is set. Where another caller holds the loop, that caller is left to
  /// run `start`. Waiting for it could last forever, because its operation may end only after this one has started.
  template <class Start>
  void run_until(Start&& start, const DoneFlag& done, const Interruption& interruption = {}) {
    process_.check();
    if (!acquire_from_helper()) {
      loop_.post([&start] { start(); });
      wait(done, std::nullopt, interruption);
      return check();
    }
    turn([&] { start(); });
    wait_until(done, std::nullopt, interruption, true);
    check();
  }

  /// Runs `start` in the loop, and returns once it has run.
  template <class Start>
  void run(Start&& start) {
    DoneFlag done;
    const auto start_and_say_so = [&] {
      start();
      set(done);
    };
    run_until(start_and_say_so, done);
  }

  /// Destroys objects of the loop, in this order. Where the driver is broken they are leaked: something has failed in their midst, so they
  /// may be in any state.
  template <class... Objects>
  void destroy(std::unique_ptr<Objects>&... objects) noexcept {
    try {
      run([&] { (objects.reset(), ...); });
    } catch (...) {
      give_up(std::current_exception());
      ((void)objects.release(), ...);
    }
  }

  /// Waits until `done` is set, the time is over, or the driver is broken. Returns whether `done` is set, and throws nothing.
  bool wait(const DoneFlag& done, std::optional<Duration> timeout, const Interruption& interruption = {}) noexcept;
  /// Gives `call` to the dispatcher once `done` is set or the driver is broken. `call` keeps `done` alive.
  void when_done(const DoneFlag& done, std::function<void()> call);

  /// Whether this process was forked from the driver's.
  bool is_inherited() const noexcept { return !process_.is_here(); }
  /// Throws where the driver is broken, or is another process' one.
  void check() const {
    process_.check();
    if (broken_) std::rethrow_exception(failure_);
  }
  /// Breaks the driver, also where another thread holds the loop.
  void give_up(std::exception_ptr failure) noexcept;

 private:
  enum class Owner { none, caller, helper };

  /// Acquires the loop, or returns false because `done` was set or the deadline passed first.
  bool acquire(const DoneFlag* done, std::optional<Instant> deadline = std::nullopt);
  /// Waits while the helper has the loop.
  void take_from_helper(std::unique_lock<std::mutex>& lock);
  /// Acquires the loop, or returns false where a caller has it.
  bool acquire_from_helper();
  void release(Next next = Next::helper);
  /// `holds_loop`: whether this caller has acquired the loop. It has released it afterwards.
  void wait_until(const DoneFlag& done, std::optional<Instant> deadline, const Interruption& interruption, bool holds_loop) noexcept;
  void turn_until(const DoneFlag& done, std::optional<Instant> deadline);
  void help();
  void help_while_alone(std::unique_lock<std::mutex>& lock);
  void break_down(std::exception_ptr failure) noexcept;
  void give_calls(const DoneFlag* done) noexcept;

  /// Runs `step` with the loop held, unless the driver is broken, which it is afterwards if `step` throws.
  template <class Step>
  void guard(Step&& step) noexcept {
    if (broken_) return;
    try {
      step();
    } catch (...) {
      break_down(std::current_exception());
    }
  }
  template <class Start>
  void turn(Start&& start) noexcept {
    guard([&] {
      const simd::FloatEnvironment environment;
      // The last holder may have released the loop without running everything that was posted to it. Those tasks are older, so they run
      // first.
      loop_.flush();
      start();
      loop_.flush();
    });
  }

  const OwnProcess process_;
  UvLoop loop_;
  std::mutex mutex_;
  std::condition_variable callers_;
  std::condition_variable helper_wakes_;
  Owner owner_ = Owner::none;
  std::atomic<int> waiting_callers_{0};
  std::uint64_t uses_ = 0;          // counts calls, which tells the helper whether the loop is in use
  std::atomic<int> background_{0};  // operations that go on without a caller
  std::atomic<bool> giving_up_{false};
  bool helper_dozes_ = false;  // the helper waits until it is notified
  Instant last_turn_{};        // when the holder of the loop last looked for events before it waited for any
  Instant busy_until_{};       // the cores are taken to have other work; for the holder of the loop
  std::atomic<bool> stopping_{false};
  std::exception_ptr failure_;  // written once, before `broken_` becomes true
  std::atomic<bool> broken_{false};
  std::mutex calls_mutex_;
  std::unordered_map<const DoneFlag*, Calls> calls_;  // of when_done()
  std::atomic<std::size_t> call_count_{0};
  std::thread helper_;
};

}  // namespace ringlet::native
