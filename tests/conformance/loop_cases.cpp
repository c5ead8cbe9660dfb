#include <catch2/catch.hpp>
#include <set>

#include "tests/conformance/network_suite.hpp"

namespace ringlet::conformance {

namespace {

void deferred_tasks_run_in_order(NetworkPair& pair) {
  EventLoop& loop = pair.loop(0);
  std::vector<int> order;
  loop.defer([&] {
    loop.defer([&] { order.push_back(4); });
    loop.defer([&] { order.push_back(5); });
    order.push_back(1);
  });
  loop.defer([&] { order.push_back(2); });
  loop.defer([&] { order.push_back(3); });
  CHECK(order.empty());
  REQUIRE(pair.drive([&] { return order.size() == 5; }));
  CHECK(order == std::vector<int>{1, 2, 3, 4, 5});
}

void deferring_from_a_timer_waits_for_its_end(NetworkPair& pair) {
  EventLoop& loop = pair.loop(0);
  std::vector<int> order;
  loop.after(Duration::milliseconds(1), [&] {
    loop.defer([&] { order.push_back(2); });
    order.push_back(1);
  });
  REQUIRE(pair.drive([&] { return order.size() == 2; }));
  CHECK(order == std::vector<int>{1, 2});
}

void timers_run_when_they_are_due(NetworkPair& pair) {
  EventLoop& loop = pair.loop(0);
  const Instant start = loop.now();
  std::vector<int> order;
  const auto set = [&](int number, Duration delay) {
    loop.after(delay, [&order, &loop, start, number, delay] {
      CHECK(loop.now() - start >= delay);
      order.push_back(number);
    });
  };
  set(3, Duration::milliseconds(40));
  set(1, Duration::milliseconds(5));
  set(2, Duration::milliseconds(20));
  CHECK(order.empty());
  REQUIRE(pair.drive([&] { return order.size() == 3; }));
  CHECK(order == std::vector<int>{1, 2, 3});
}

void a_timer_without_delay_runs_after_the_call(NetworkPair& pair) {
  EventLoop& loop = pair.loop(0);
  int runs = 0;
  loop.after({}, [&] {
    loop.after({}, [&] { runs += 10; });
    CHECK(runs == 0);
    runs += 1;
  });
  CHECK(runs == 0);
  REQUIRE(pair.drive([&] { return runs == 11; }));
}

void cancelled_timers_do_not_run(NetworkPair& pair) {
  EventLoop& loop = pair.loop(0);
  std::set<TimerId> ids;
  int runs = 0;
  bool last = false;
  const TimerId early = loop.after(Duration::milliseconds(1), [&] { ++runs; });
  const TimerId late = loop.after(Duration::milliseconds(8), [&] { runs += 100; });
  TimerId own = 0;
  own = loop.after(Duration::milliseconds(4), [&] {
    loop.cancel(own);
    loop.cancel(early);
    loop.cancel(late);
    ++runs;
  });
  ids = {early, late, own};
  CHECK(ids.size() == 3);
  CHECK_FALSE(ids.contains(0));
  loop.after(Duration::milliseconds(20), [&] { last = true; });
  REQUIRE(pair.drive([&] { return last; }));
  CHECK(runs == 2);
  // Cancelling a timer that has run does nothing, even if another timer has taken its place since.
  bool renewed = false;
  loop.after(Duration::milliseconds(1), [&] { renewed = true; });
  for (const TimerId id : ids) loop.cancel(id);
  CHECK(pair.drive([&] { return renewed; }));
}

void a_cancelled_task_is_destroyed_without_running(NetworkPair& pair) {
  auto token = std::make_shared<int>(0);
  const TimerId id = pair.loop(0).after(Duration::seconds(100), [token] { ++*token; });
  pair.loop(0).cancel(id);
  bool over = false;
  pair.loop(0).after(Duration::milliseconds(1), [&] { over = true; });
  REQUIRE(pair.drive([&] { return over; }));
  CHECK(token.use_count() == 1);
  CHECK(*token == 0);
}

void now_stands_still_in_a_callback(NetworkPair& pair) {
  EventLoop& loop = pair.loop(0);
  bool over = false;
  const Instant before = loop.now();
  loop.after(Duration::milliseconds(1), [&] {
    const Instant entered = loop.now();
    CHECK(entered >= before + Duration::milliseconds(1));
    volatile std::uint64_t busy = 0;
    for (int round = 0; round < 200'000; ++round) busy = busy + 1;
    CHECK(loop.now() == entered);
    over = true;
  });
  REQUIRE(pair.drive([&] { return over; }));
  CHECK(loop.now() >= before);
}

}  // namespace

std::vector<Case> loop_cases() {
  return {{"deferred tasks run in order", deferred_tasks_run_in_order},
          {"deferring from a timer waits for its end", deferring_from_a_timer_waits_for_its_end},
          {"timers run when they are due", timers_run_when_they_are_due},
          {"a timer without delay runs after the call", a_timer_without_delay_runs_after_the_call},
          {"cancelled timers do not run", cancelled_timers_do_not_run},
          {"a cancelled task is destroyed without running", a_cancelled_task_is_destroyed_without_running},
          {"now stands still in a callback", now_stands_still_in_a_callback}};
}

}  // namespace ringlet::conformance
