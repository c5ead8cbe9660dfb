#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Interrupts the thread that began last, the third time that it asks.
class Request {
 public:
  std::function<bool()> function() {
    return [this] { return std::this_thread::get_id() == thread_.load() && ++asked_ >= 3; };
  }
  void begin() {
    thread_ = std::this_thread::get_id();
    asked_ = 0;
  }

 private:
  std::atomic<std::thread::id> thread_{std::this_thread::get_id()};
  std::atomic<int> asked_{0};
};

/// On a rank's thread, where Catch's own checks have no place.
template <class Action>
void expect_cancelled(Action action, const std::string& part = {}) {
  const std::string text = failure_of<Cancelled>(action);
  expect(text.find(part) != std::string::npos, text);
}

/// Runs `wait` as rank 0 of two, with an interruption, while rank 1 does not take part, but waits in a call of its own.
void run_interrupted(
    bool elastic, const std::function<void(Group&, Request&)>& wait, const std::function<void(Group&)>& other = [](Group&) {}) {
  Request request;
  run_ranks(
      2,
      [&](Group& group) {
        if (group.rank() == 0) {
          request.begin();
          wait(group, request);
        } else {
          std::vector<float> value{1};
          expect_cancelled([&] { group.recv(value, 0); });
          other(group);
        }
      },
      [&](native::WorldConfig& config) {
        config.options.elastic = elastic;
        config.status = false;
        if (config.options.rank == 0) config.interrupted = request.function();
      });
}

void go_on(Group& group) {
  Group next = group.reform().world;
  expect(sum_of(next, 1) == 2, "the sum");
}

}  // namespace

TEST_CASE("a collective that is interrupted ends the world on all ranks, and says why") {
  run_interrupted(false, [](Group& group, Request&) {
    expect_cancelled([&] { group.barrier(); }, "rank 0 was interrupted");
    expect_cancelled([&] { group.barrier(); });
  });
}

TEST_CASE("while a caller is asked, other threads may call the group") {
  std::atomic<bool> asking{false}, called{false}, waited_in_vain{false};
  const auto ask = [&] {
    asking = true;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!called && !waited_in_vain) {
      std::this_thread::yield();
      waited_in_vain = std::chrono::steady_clock::now() > limit;
    }
    return true;
  };
  run_ranks(
      2,
      [&](Group& group) {
        std::thread other;
        if (group.rank() == 0)
          other = std::thread([&] {
            while (!asking) std::this_thread::yield();
            (void)group.link_info();
            called = true;
          });
        std::vector<float> value{1};
        expect_cancelled([&] { group.recv(value, 1 - group.rank()); });
        if (group.rank() == 0) other.join();
      },
      [&](native::WorldConfig& config) {
        if (config.options.rank == 0) config.interrupted = ask;
      });
  CHECK_FALSE(waited_in_vain);
}

TEST_CASE("works, splits and messages are interrupted, too") {
  const int kind = GENERATE(0, 1, 2);
  run_interrupted(false, [kind](Group& group, Request&) {
    std::vector<float> value{1};
    if (kind == 0) {
      Work work = group.all_reduce_async(ReduceOp::sum, value, value);
      expect_cancelled([&] { work.wait(); });
    } else if (kind == 1) {
      expect_cancelled([&] { (void)group.split(0); });
    } else {
      expect_cancelled([&] { group.recv(value, 1); });
    }
  });
}

TEST_CASE("a thread that waits while another turns the loop is interrupted") {
  run_interrupted(false, [](Group& group, Request& request) {
    std::vector<float> value{1};
    auto other = std::async(std::launch::async, [&] { expect_cancelled([&] { group.recv(value, 1, {.stream = Stream{1}}); }); });
    request.begin();
    expect_cancelled([&] { group.barrier(); });
    other.get();
  });
}

TEST_CASE("an elastic group goes on after an interruption") {
  run_interrupted(
      true,
      [](Group& group, Request& request) {
        expect_cancelled([&] { group.barrier(); });
        request.begin();
        go_on(group);
      },
      go_on);
}

TEST_CASE("reform() is interrupted while others do not come, and may be called again") {
  std::atomic<bool> was_interrupted{false};
  run_interrupted(
      true,
      [&](Group& group, Request& request) {
        expect_cancelled([&] { group.barrier(); });
        request.begin();
        expect_cancelled([&] { (void)group.reform(); });
        was_interrupted = true;
        request.begin();
        go_on(group);
      },
      [&](Group& group) {
        while (!was_interrupted) std::this_thread::yield();
        go_on(group);
      });
}

TEST_CASE("an elastic training is interrupted, and does not take that for a loss") {
  Request request;  // of no rank's thread until it begins
  std::atomic<bool> was_interrupted{false};
  const auto train = [&](Group& group) {
    std::vector<double> steps{0}, gradient{1};
    Checkpoint state;
    state.add("model", Tree{{"steps", steps}});
    ElasticTrainer trainer(group, state);
    const bool first = group.rank() == 0;
    const auto take_step = [&](Step& step) {
      if (first && step.number() == 2) request.begin();
      // The first rank waits for this one in the step's average.
      while (!first && step.number() == 2 && !was_interrupted) std::this_thread::yield();
      step.add(gradient);
      step.average();
      step.commit([&] { ++steps[0]; });
    };
    trainer.run({.steps = 4, .batch = 2}, take_step);
    return steps[0];
  };
  run_ranks(
      2,
      [&](Group& group) {
        if (group.rank() == 1) {
          expect(train(group) == 4, "the steps");
          return;
        }
        expect_cancelled([&] { (void)train(group); });
        was_interrupted = true;
        group.leave();
      },
      [&](native::WorldConfig& config) {
        config.options.elastic = true;
        config.status = false;
        if (config.options.rank == 0) config.interrupted = request.function();
      });
}

TEST_CASE("init() is interrupted while it waits for the others, and while it knocks") {
  Request request;
  const LoopbackSocket coordinator = open_loopback_socket();
  InitOptions options{.status = false, .interrupted = request.function()};
  SECTION("as rank 0") {
    options.rank = 0;
    options.world_size = 2;
    options.coordinator = to_string(coordinator.address);
    options.listen_fd = coordinator.descriptor;
  }
  SECTION("as another rank") {
    options.rank = 1;
    options.world_size = 2;
    options.coordinator = to_string(coordinator.address);
  }
  SECTION("at a door") { options.join = to_string(coordinator.address); }
  CHECK_THROWS_AS(init(options), Cancelled);
  ::close(coordinator.descriptor);
}
