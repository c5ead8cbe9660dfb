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

/// Decides which thread turns the loop; only one holds it at a time. A thread that waits for an operation turns the loop itself, so that a
/// short operation costs no switch of threads. While no caller waits, a helper thread turns it, so that operations go on while the program
/// computes, and heartbeats are answered. All members may be called from any thread.
class LoopDriver {
 public:
  /// `helper` says whether to start the helper thread.
  explicit LoopDriver(bool helper);
  ~LoopDriver();
  LoopDriver(const LoopDriver&) = delete;
  LoopDriver& operator=(const LoopDriver&) = delete;

  /// May be used only while holding the loop, except for post() and wake().
  UvLoop& loop() { return loop_; }

  /// Runs `start` with the loop held, and flushes what it started.
  template <class Start>
  void run(Start&& start) {
    acquire(nullptr);
    turn([&] { start(); });
    release();
  }

  /// Like run(), but where another thread holds the loop at this moment, that thread is left to run `start`. What `start` begins goes on in
  /// the background until background_done() is called for it from the loop.
  void run_in_background(Task start);
  void background_done();

  /// Runs `start` with the loop held, then turns the loop until `done`. Where another caller holds the loop, that caller is left to run
  /// `start`. Waiting for it could last forever, because its operation may end only after this one has started.
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

  /// Waits until `done` is true or the time is over. Returns whether it is true.
  bool wait(const std::atomic<bool>& done, std::optional<Duration> timeout);

 private:
  enum class Owner { none, caller, helper };

  /// Acquires the loop, or returns false because `done` became true or the deadline passed first.
  bool acquire(const std::atomic<bool>* done, std::optional<Instant> deadline = std::nullopt);
  /// Acquires the loop, or returns false where a caller has it.
  bool acquire_from_helper();
  void release();
  void drive(const std::atomic<bool>& done, std::optional<Instant> deadline);
  void help();
  void help_while_alone(std::unique_lock<std::mutex>& lock);

  template <class Start>
  void turn(Start&& start) {
    const simd::FloatEnvironment environment;
    // The last holder may have released the loop without running everything that was posted to it. Those tasks are older, so they run
    // first.
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
  std::uint64_t uses_ = 0;          // counts calls, which tells the helper whether the loop is in use
  std::atomic<int> background_{0};  // operations that go on without a caller
  bool helper_dozes_ = false;       // the helper waits until it is notified
  std::atomic<bool> stopping_{false};
  std::thread helper_;
};

}  // namespace ringlet::native
