#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "simd/kernels.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet::native {

/// Who turns the loop. One thread at a time has it: a thread that waits for an operation turns it itself, so that a short operation costs
/// no switch of threads; while no caller waits, a thread of our own turns it, so that operations go on behind the caller's computing and
/// heartbeats are answered. All members may be called from any thread.
class Progress {
 public:
  /// `helper`: whether there is a thread of our own.
  explicit Progress(bool helper);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Only while holding the loop, but for post() and wake().
  UvLoop& loop() { return loop_; }

  /// Runs `start` with the loop held, and pushes out what it started.
  template <class Start>
  void run(Start&& start) {
    acquire(nullptr);
    turn([&] { start(); });
    release();
  }

  /// As run(), or, where another thread turns the loop at this moment, leaves `start` to it. What it started goes on in the background,
  /// behind the caller, until background_done() is called for it from the loop.
  void run_in_background(Task start);
  void background_done();

  /// Runs `start` with the loop held, then turns the loop until `done`. Where another caller turns it, `start` is left to that one: it may
  /// wait for the very operation that another rank will only start after this one.
  template <class Start>
  void run_until(Start&& start, const std::atomic<bool>& done) {
    if (!acquire_from_helper()) {
      loop_.post([&start] { start(); });
      wait(done, std::nullopt);
      return;
    }
    turn([&] { start(); });
    drive(done, std::nullopt);
    release();
  }

  /// Until `done` is true or the time is over; returns whether it is true.
  bool wait(const std::atomic<bool>& done, std::optional<Duration> timeout);

 private:
  enum class Owner { none, caller, helper };

  /// Gets the loop, or returns false because `done` became true or the deadline passed first.
  bool acquire(const std::atomic<bool>* done, std::optional<Instant> deadline = std::nullopt);
  /// Gets the loop unless a caller has it.
  bool acquire_from_helper();
  void release();
  void drive(const std::atomic<bool>& done, std::optional<Instant> deadline);
  void help();
  void help_while_alone(std::unique_lock<std::mutex>& lock);

  template <class Start>
  void turn(Start&& start) {
    const simd::FloatEnvironment environment;
    // Whoever had the loop may have let go of it without what was posted to it; that was started earlier.
    loop_.flush();
    start();
    loop_.flush();
  }

  UvLoop loop_;
  std::mutex mutex_;
  std::condition_variable callers_;
  std::condition_variable helper_wakes_;
  Owner owner_ = Owner::none;
  std::atomic<int> waiting_callers_{0};
  std::uint64_t uses_ = 0;          // by callers; tells the helper whether the loop is in use
  std::atomic<int> background_{0};  // operations that go on without a caller
  bool helper_dozes_ = false;       // it waits until it is told
  std::atomic<bool> stopping_{false};
  std::thread helper_;
};

}  // namespace ringlet::native
