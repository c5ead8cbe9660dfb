#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <latch>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "native/shared_group.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

namespace ringlet::test {

inline constexpr int kRounds = 10'000;  // of 1 ms, after which a test gives up

/// The doors of the members, for the threads that join.
class Doors {
 public:
  explicit Doors(int size) : doors_(static_cast<std::size_t>(size)), open_(size) {}
  void open(const Group& group) {
    doors_[static_cast<std::size_t>(group.rank())] = group.door();
    open_.count_down();
  }
  const std::string& of(int rank) {
    for (int round = 0; !open_.try_wait(); ++round) {
      // A member may have failed before that, and its test waits for the thread that joins.
      expect(round < 6 * kRounds, "the members have not opened their doors");
      pass(std::chrono::milliseconds(1));
    }
    return doors_[static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<std::string> doors_;
  std::latch open_;
};

/// A thread that is a process of its own to the group.
class Process {
 public:
  explicit Process(std::function<void()> body) : thread_([this, body = std::move(body)] { run(body); }) {}
  ~Process() {
    if (thread_.joinable()) thread_.join();
  }
  bool has_failed() const { return failed_; }
  /// Rethrows what the body has thrown.
  void join() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run(const std::function<void()>& body) {
    try {
      body();
    } catch (const std::exception& error) {
      // At once, since those who wait for this process may wait for ever.
      std::fprintf(stderr, "a process has failed: %s\n", error.what());
      failure_ = std::current_exception();
      failed_ = true;
    }
  }

  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

inline InitOptions elastic_options() {
  InitOptions options;
  options.elastic = true;
  options.on_split = OnSplit::wait;
  options.status = false;
  options.operation_timeout = std::chrono::seconds(60);
  options.connect_timeout = std::chrono::seconds(15);
  return options;
}

inline InitOptions joiner_options(const std::string& doors) {
  InitOptions options = elastic_options();
  options.join = doors;
  return options;
}

/// For run_ranks(): an elastic group in which a rank that is silent for a second is lost.
inline void impatient(native::WorldConfig& config) {
  config.options.elastic = true;
  config.options.heartbeat_timeout = Duration::seconds(1);
  config.on_split = OnSplit::wait;
  config.status = false;
}

/// Nothing is heard of this rank until then, as of one whose process was stopped.
inline void stand_still(const Group& group, std::latch& until) {
  group.shared().driver().run([&] { until.wait(); });
}

/// Admits until the group has this size. Ranks that go while it waits end the wait by the group's failure.
inline Reformed grow_to(Group group, int size) {
  for (int round = 0; round < kRounds; ++round) {
    auto next = group.admit();
    if (next && next->world.size() >= size) return *next;
    if (next) group = next->world;
    pass(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("nobody has joined in time");
}

/// Admits those that knock now, if they come. All ranks call it together.
inline std::optional<Reformed> admit_now(Group group) {
  for (int round = 0; round < kRounds; ++round) {
    if (auto next = group.admit()) return next;
    if (group.shared().growth().state() == GrowthState::none) return std::nullopt;
    pass(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("a growth has not ended in time");
}

/// Waits until this rank is in the next world, which has begun to form.
inline void await_next(const Group& group) {
  for (int round = 0; group.shared().growth().state() != GrowthState::ready; ++round) {
    expect(round < kRounds, "the next world is ready");
    pass(std::chrono::milliseconds(1));
  }
}

/// Waits until so many knock at this rank's door.
inline void await_knocks(const Group& group, int count) {
  for (int round = 0; round < kRounds && group.shared().growth().waiting() < count; ++round) pass(std::chrono::milliseconds(1));
  expect(group.shared().growth().waiting() == count, "the knocks");
}

}  // namespace ringlet::test
