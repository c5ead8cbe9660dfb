// Tests of a training that other ranks join.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

using namespace ringlet;
using namespace std::chrono_literals;
using test::expect;
using test::run_elastic;

namespace {

constexpr std::uint64_t kBatch = 7;

/// Whole numbers, none of them 0, so that a sample that is lost or used twice shows.
double contribution(std::uint64_t step, std::uint64_t sample) { return static_cast<double>((step * 7919 + sample * 104'729) % 1009 + 1); }

double sum_until(std::uint64_t steps) {
  double sum = 0;
  for (std::uint64_t step = 0; step < steps; ++step)
    for (std::uint64_t sample = 0; sample < kBatch; ++sample) sum += contribution(step, sample);
  return sum;
}

struct Stopped {};

/// What one rank saw of a training.
struct Seen {
  std::uint64_t first_step = 0, last_step = 0;  // that it took
  int joined = 0, lost = 0, replaced = 0, ranks = 0;
};

/// Trains until a step on `ranks` ranks, which are not those of the beginning, is followed by ten more on as many.
Seen train(Group world, int ranks, const std::function<void(const Step&)>& at = {}, std::optional<int> min_ranks = {}) {
  Seen seen;
  std::vector<double> sum(1), gradient(1), ballast(100'000, world.epoch() == 0 ? 1.5 : 0);
  std::optional<std::uint64_t> complete_since;
  bool is_first = true;
  Checkpoint state;
  state.add("model", Tree{{"sum", sum}, {"ballast", ballast}}).set("seed", 5);
  ElasticTrainerOptions options{.min_ranks = min_ranks};
  options.on_change = [&](const MembershipChange& change) {
    seen.joined += change.joined;
    seen.lost += static_cast<int>(change.lost.size());
    expect(change.pause.count() > 0 && (change.lost.empty() == change.cause.ok()), "what a change says");
  };
  options.on_state = [&](const Checkpoint& now, std::uint64_t) {
    ++seen.replaced;
    expect(now.get<std::int64_t>("seed") == 5, "the values");
  };
  ElasticTrainer trainer(std::move(world), state, options);
  world = Group();
  try {
    trainer.run({.steps = 1'000'000, .batch = kBatch}, [&](Step& step) {
      if (std::exchange(is_first, false)) seen.first_step = step.number();
      if (at) at(step);
      gradient[0] = 0;
      for (std::uint64_t i = step.first(); i < step.first() + step.count(); ++i) gradient[0] += contribution(step.number(), i);
      gradient[0] /= static_cast<double>(step.count());
      step.add(gradient);
      step.average();
      step.commit([&] { sum[0] += gradient[0] * kBatch; });
      seen.last_step = step.number();
      seen.ranks = step.world().size();
      const bool complete = seen.ranks == ranks && step.world().epoch() > 0;
      if (!complete) complete_since.reset();
      if (complete && !complete_since) complete_since = step.number();
      if (complete_since && step.number() == *complete_since + 10) throw Stopped();
    });
  } catch (const Stopped&) {
  }
  expect(std::abs(sum[0] - sum_until(seen.last_step + 1)) < 1e-6, "each sample of each step once");
  expect(ballast == std::vector<double>(100'000, 1.5), "the whole state");
  return seen;
}

/// All are joined at the end, and the first failure is rethrown.
class Newcomers {
 public:
  void start(std::function<void()> body) { processes_.emplace_back(std::move(body)); }
  void join_all() {
    for (test::Process& process : processes_) process.join();
    processes_.clear();
  }

 private:
  std::list<test::Process> processes_;
};

Group join(const std::string& door) { return init(test::joiner_options(door)); }

}  // namespace

TEST_CASE("a rank joins a training, gets its state, and takes its part of the steps") {
  for (const int size : {1, 2, 3}) {
    Newcomers newcomers;
    run_elastic(size, [&](Group& world) {
      const int rank = world.rank();
      const Seen seen = train(std::exchange(world, Group()), size + 1, [&](const Step& step) {
        if (step.number() != 5 || rank != size - 1) return;
        newcomers.start([door = step.world().door(), size] {
          const Seen its = train(join(door), size + 1);
          expect(its.first_step > 5 && its.replaced == 1 && its.joined == 0, "it begins where the others are");
        });
      });
      expect(seen.joined == 1 && seen.lost == 0 && seen.replaced == 0, "the others keep their state");
    });
    newcomers.join_all();
  }
}

TEST_CASE("with fewer ranks than min_ranks a training takes no step until others have joined") {
  test::Doors doors(2);
  Newcomers newcomers;
  run_elastic(2, [&](Group& world) {
    const int rank = world.rank();
    doors.open(world);
    const auto at = [&](const Step& step) {
      expect(step.world().size() == 2, "no step of one rank");
      if (rank == 1 && step.number() == 5) throw Stopped();
    };
    const Seen seen = train(std::exchange(world, Group()), 2, at, 2);
    if (rank == 0) return expect(seen.lost == 1 && seen.joined == 1 && seen.replaced == 0, "one has come for one that has gone");
    newcomers.start([&] {
      const Seen its = train(join(doors.of(0)), 2, {}, 2);
      expect(its.first_step == 5 && its.replaced == 1, "no step is lost");
    });
  });
  newcomers.join_all();
}

TEST_CASE("ranks join one after the other, and ranks go in between") {
  Newcomers newcomers;
  run_elastic(2, [&](Group& world) {
    const int rank = world.rank();
    int size = 2;
    const Seen seen = train(std::exchange(world, Group()), 4, [&](const Step& step) {
      // Each time that the group has grown, one more comes.
      if (std::exchange(size, step.world().size()) == step.world().size() && step.number() != 3) return;
      if (step.world().rank() == 0 && size < 4) newcomers.start([door = step.world().door()] { train(join(door), 4); });
    });
    expect(seen.joined == 2 && seen.ranks == 4 && rank < 2, "two have come");
  });
  newcomers.join_all();
}

TEST_CASE("a rank that is lost while another joins is not needed for it") {
  for (const int leaver : {0, 1, 2}) {
    CAPTURE(leaver);
    Newcomers newcomers;
    std::atomic<bool> knocking{false};
    run_elastic(3, [&](Group& world) {
      const int origin = world.rank();
      int steps = 0;
      try {
        const Seen seen = train(std::exchange(world, Group()), 3, [&](const Step& step) {
          if (step.world().epoch() == 0 && step.number() == 3 && origin == (leaver + 1) % 3) {
            newcomers.start([door = step.world().door()] { train(join(door), 3); });
            knocking = true;
          }
          // It goes some steps later, before, while, or after the newcomer meets the others.
          if (origin == leaver && knocking && ++steps > 20 * leaver) throw Stopped();
        });
        expect(seen.ranks == 3 || origin == leaver, "three in the end");
      } catch (const Stopped&) {
      }
    });
    newcomers.join_all();
  }
}
