#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tests/transport/loopback.hpp"

using namespace ringlet;
using ringlet::test::drive;

TEST_CASE("uv loop: deferred tasks run in order, after the current callback") {
  UvLoop loop;
  std::string log;
  loop.defer([&] {
    log += "a";
    loop.defer([&] { log += "c"; });
    log += "b";
  });
  loop.defer([&] { log += "B"; });
  CHECK(log.empty());
  CHECK(loop.flush());
  CHECK(log == "abBc");
  CHECK_FALSE(loop.flush());
}

TEST_CASE("uv loop: tasks that defer tasks without end leave room for timers") {
  UvLoop loop;
  bool timer_ran = false;
  std::uint64_t rounds = 0;
  Task again = [&] {
    ++rounds;
    loop.defer(again);
  };
  loop.defer(again);
  loop.after(Duration::milliseconds(2), [&] { timer_ran = true; });
  CHECK(drive(loop, [&] { return timer_ran; }));
  CHECK(rounds > 1);
}

TEST_CASE("uv loop: wait does not block where tasks were deferred between turns") {
  UvLoop loop;
  bool ran = false;
  loop.defer([&] { ran = true; });
  loop.wait();
  CHECK(ran);
}

TEST_CASE("uv loop: timers run in the order of their deadlines and not early") {
  UvLoop loop;
  std::string log;
  const auto start = loop.now();
  const auto expect_after = [&](const char* name, std::int64_t milliseconds) {
    loop.after(Duration::milliseconds(milliseconds), [&log, &loop, name, start, milliseconds] {
      CHECK(loop.now() - start >= Duration::milliseconds(milliseconds));
      log += name;
    });
  };
  expect_after("d", 7);
  expect_after("b", 3);
  expect_after("c", 3);
  expect_after("a", -5);
  CHECK(log.empty());
  CHECK(drive(loop, [&] { return log.size() == 4; }));
  CHECK(log == "abcd");
}

TEST_CASE("uv loop: a cancelled timer does not run, cancelling late is ignored") {
  UvLoop loop;
  std::string log;
  const auto cancelled = loop.after(Duration::milliseconds(1), [&] { log += "x"; });
  const auto early = loop.after({}, [&] { log += "e"; });
  CHECK(cancelled != 0);
  CHECK(early != cancelled);
  loop.after({}, [&] { loop.cancel(cancelled); });
  bool done = false;
  loop.after(Duration::milliseconds(4), [&] { done = true; });
  CHECK(drive(loop, [&] { return done; }));
  loop.cancel(early);
  loop.cancel(0);
  CHECK(log == "e");
}

TEST_CASE("uv loop: a timer may cancel itself and the next one, and set another") {
  UvLoop loop;
  std::string log;
  TimerId first = 0;
  TimerId second = 0;
  first = loop.after({}, [&] {
    log += "1";
    loop.cancel(first);
    loop.cancel(second);
    loop.after({}, [&] { log += "3"; });
  });
  second = loop.after({}, [&] { log += "2"; });
  CHECK(drive(loop, [&] { return log.size() >= 2; }));
  CHECK(log == "13");
}

TEST_CASE("uv loop: the longest delay does not overflow") {
  UvLoop loop;
  const auto id = loop.after({std::numeric_limits<std::int64_t>::max()}, [] { FAIL("ran"); });
  bool ran = false;
  loop.after({}, [&] { ran = true; });
  CHECK(drive(loop, [&] { return ran; }));
  loop.cancel(id);
}

TEST_CASE("uv loop: time stands still within a callback") {
  UvLoop loop;
  bool ran = false;
  loop.defer([&] {
    const auto before = loop.now();
    const auto real_start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() == real_start) {
    }
    CHECK(loop.now() == before);
    ran = true;
  });
  loop.poll();
  CHECK(ran);
}

TEST_CASE("uv loop: posts from many threads all run, in the order of each thread") {
  UvLoop loop;
  constexpr int kThreads = 4;
  constexpr int kPosts = 2'000;
  std::array<int, kThreads> next{};
  int total = 0;
  bool ordered = true;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kPosts; ++i)
        loop.post([&, thread, i] {
          ordered = ordered && next[thread]++ == i;
          ++total;
        });
    });
  CHECK(drive(loop, [&] { return total == kThreads * kPosts; }));
  for (auto& thread : threads) thread.join();
  CHECK(ordered);
}

TEST_CASE("uv loop: a post at the moment of another one's wake-up is not left behind") {
  UvLoop loop;
  constexpr int kPosts = 2'000;
  std::array<std::atomic<int>, 2> ran{};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  // Each thread posts again only when its last task has run, so that no later post wakes the loop for a lost one.
  for (auto& own : ran)
    threads.emplace_back([&loop, &own, &over] {
      for (int i = 0; i < kPosts && !over; ++i) {
        loop.post([&own] { ++own; });
        while (own <= i && !over) std::this_thread::yield();
      }
    });
  CHECK(drive(loop, [&] { return ran[0] == kPosts && ran[1] == kPosts; }));
  over = true;
  for (auto& thread : threads) thread.join();
}

TEST_CASE("uv loop: wake ends a blocked wait") {
  UvLoop loop;
  std::atomic<bool> woken{false};
  std::thread other([&] {
    woken = true;
    loop.wake();
  });
  while (!woken) loop.wait();
  other.join();
  // A wake-up while nobody waits is kept for the next wait.
  loop.poll();
  loop.wake();
  loop.wait();
}

TEST_CASE("uv loop: threads hand it to each other under a mutex") {
  UvLoop loop;
  std::mutex mutex;
  int ran = 0;
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const std::lock_guard lock(mutex);
      bool mine = false;
      loop.defer([&] { mine = true; });
      loop.after({}, [&] { ++ran; });
      while (!mine) loop.poll();
    }
  };
  std::thread first(work);
  std::thread second(work);
  first.join();
  second.join();
  CHECK(drive(loop, [&] { return ran == 400; }));
}

TEST_CASE("uv loop: destruction drops what has not run") {
  const auto witness = std::make_shared<int>(0);
  {
    UvLoop loop;
    loop.defer([witness] { ++*witness; });
    loop.post([witness] { ++*witness; });
    loop.after({}, [witness] { ++*witness; });
    CHECK(witness.use_count() == 4);
  }
  CHECK(witness.use_count() == 1);
  CHECK(*witness == 0);
}

TEST_CASE("uv loop: a source may remove another one, also where it had nothing to do") {
  UvLoop loop;
  struct Source final : PollSource {
    std::function<void()> on_poll;
    int polls = 0;
    bool poll() override {
      ++polls;
      if (on_poll) on_poll();
      return false;
    }
    bool prepare_to_block() override { return true; }
    void awake() override {}
  };
  Source first, second;
  loop.add_source(first);
  loop.add_source(second);
  first.on_poll = [&] { loop.remove_source(second); };
  loop.poll();
  loop.wake();
  loop.wait();
  CHECK(first.polls == 1);
  CHECK(second.polls == 0);
}
