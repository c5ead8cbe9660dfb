// Tests of the training loop that survives the loss of ranks.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ringlet/ringlet.hpp>
#include <set>
#include <utility>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;
using test::run_elastic;

namespace {

constexpr std::size_t kSums = 3;

/// Whole numbers, none of them 0, so that a sample that is lost or used twice shows.
double contribution(std::uint64_t step, std::uint64_t sample, std::size_t index) {
  return static_cast<double>((step * 7919 + sample * 104'729 + index * 31) % 1009 + 1);
}

/// A model that adds up the contributions of all samples of all steps.
class Model {
 public:
  Checkpoint checkpoint() {
    Checkpoint state;
    state.add("model", Tree{{"sums", sums}, {"steps", steps}});
    return state;
  }
  /// The mean over this rank's samples; where there are none, not a number.
  void compute_gradient(const Step& step) {
    for (std::size_t i = 0; i < kSums; ++i) {
      gradient[i] = 0;
      for (std::uint64_t sample = step.first(); sample < step.first() + step.count(); ++sample)
        gradient[i] += contribution(step.number(), sample, i);
      gradient[i] /= static_cast<double>(step.count());
    }
  }
  void apply(std::uint64_t batch) {
    for (std::size_t i = 0; i < kSums; ++i) sums[i] += gradient[i] * static_cast<double>(batch);
    ++steps[0];
  }
  void expect_trained(const TrainingPlan& plan) const {
    for (std::size_t i = 0; i < kSums; ++i) {
      double sum = 0;
      for (std::uint64_t step = 0; step < plan.steps; ++step)
        for (std::uint64_t sample = 0; sample < plan.batch; ++sample) sum += contribution(step, sample, i);
      expect(std::abs(sums[i] - sum) < 1e-6, [&] { return "sum " + std::to_string(sums[i]) + " instead of " + std::to_string(sum); });
    }
    expect(steps[0] == static_cast<std::int64_t>(plan.steps), [&] { return std::to_string(steps[0]) + " steps"; });
  }

  std::vector<double> sums = std::vector<double>(kSums);
  std::vector<std::int64_t> steps = std::vector<std::int64_t>(1);
  std::vector<double> gradient = std::vector<double>(kSums);
};

/// When a rank goes away within a step.
enum class Phase : std::uint8_t { before_add, before_average, before_commit, in_apply, after_commit };

struct Leaves {};

/// One rank's training. `at` is called in each phase of each attempt.
void train(ElasticTrainer& trainer, Model& model, const TrainingPlan& plan, const std::function<void(Step&, Phase)>& at = {}) {
  trainer.run(plan, [&](Step& step) {
    const auto pass = [&](Phase phase) {
      if (at) at(step, phase);
    };
    model.compute_gradient(step);
    pass(Phase::before_add);
    step.add(model.gradient);
    pass(Phase::before_average);
    step.average();
    pass(Phase::before_commit);
    step.commit([&] {
      pass(Phase::in_apply);
      model.apply(plan.batch);
    });
    pass(Phase::after_commit);
  });
}

/// All ranks have the same bits.
void expect_equal_sums(const Group& world, const Model& model) {
  Group group = world;
  std::vector<double> least = model.sums, most = model.sums;
  group.all_min(least);
  group.all_max(most);
  expect(least == most, "the same sums on all ranks");
}

}  // namespace

TEST_CASE("a trainer does what one rank alone would do, with any number of ranks") {
  for (const bool elastic : {false, true})
    for (const int size : {1, 2, 3, 5})
      for (const std::uint64_t batch : {16, 7, 2}) {
        const TrainingPlan plan{.steps = 6, .batch = batch};
        test::run_ranks(
            size,
            [&](Group& world) {
              Model model;
              ElasticTrainer trainer(world, model.checkpoint());
              std::uint64_t attempts = 0;
              train(trainer, model, plan, [&](Step& step, Phase phase) {
                if (phase != Phase::before_add) return;
                expect(step.number() == attempts++, "each step once");
                expect(step.world().size() == size, "the group");
              });
              expect(trainer.step() == 6 && attempts == 6, "the steps");
              model.expect_trained(plan);
              expect_equal_sums(trainer.world(), model);
              trainer.run(plan, [](Step&) { throw std::runtime_error("all steps are committed already"); });
            },
            [&](native::WorldConfig& config) { config.options.elastic = elastic; });
      }
}

TEST_CASE("whichever rank goes, in whatever phase of a step, the others commit all steps") {
  const TrainingPlan plan{.steps = 8, .batch = 10};
  for (const int leaver : {0, 1, 2})
    for (const Phase phase : {Phase::before_add, Phase::before_average, Phase::before_commit, Phase::in_apply, Phase::after_commit})
      for (const std::uint64_t at : {0, 3, 7}) {
        CAPTURE(leaver, phase, at);
        run_elastic(3, [&](Group& world) {
          const int origin = world.rank();
          Model model;
          std::vector<MembershipChange> changes;
          ElasticTrainerOptions options;
          options.on_change = [&](const MembershipChange& change) { changes.push_back(change); };
          ElasticTrainer trainer(std::exchange(world, Group()), model.checkpoint(), options);
          try {
            train(trainer, model, plan, [&](Step& step, Phase now) {
              if (origin == leaver && now == phase && step.number() == at) throw Leaves();
            });
          } catch (const Leaves&) {
            return;
          }
          model.expect_trained(plan);
          if (changes.empty()) {  // all was done when the rank went
            expect(at == 7 && phase >= Phase::in_apply, "a loss was not told");
            return;
          }
          expect(changes.size() == 1 && changes[0].lost == std::vector<int>{leaver}, "who was lost");
          expect(changes[0].world.size() == 2 && trainer.world().size() == 2, "who is left");
          expect(changes[0].cause.code() == Errc::peer_lost && changes[0].cause.rank() == leaver, "the culprit");
          expect(changes[0].step == at || changes[0].step == at + 1, "the step");
          expect(changes[0].pause.count() > 0, "the pause");
          expect_equal_sums(trainer.world(), model);
        });
      }
}

TEST_CASE("ranks go one after the other in a trainer's steps, to the last") {
  const TrainingPlan plan{.steps = 12, .batch = 9};
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    Model model;
    std::set<int> gone;
    ElasticTrainerOptions options;
    options.on_change = [&](const MembershipChange& change) { gone.insert(static_cast<int>(change.lost.size())); };
    ElasticTrainer trainer(std::exchange(world, Group()), model.checkpoint(), options);
    try {
      train(trainer, model, plan, [&](Step& step, Phase now) {
        if (origin > 0 && now == static_cast<Phase>(origin) && step.number() == static_cast<std::uint64_t>(3 * origin)) throw Leaves();
      });
    } catch (const Leaves&) {
      return;
    }
    model.expect_trained(plan);
    expect(trainer.world().size() == 1 && !gone.empty(), "one is left");
  });
}

TEST_CASE("what rounding has left of a step that is discarded does not count: the training has the bits of one without a fault") {
  const TrainingPlan plan{.steps = 12, .batch = 6};
  const auto trained = [&](bool feedback, const std::set<std::uint64_t>& discarded, Phase in) {
    std::vector<double> sums;
    run_elastic(3, [&](Group& world) {
      Model model;
      ElasticTrainerOptions options;
      options.average.communication_type = Wire::int4({.feedback = feedback, .least_elements = 0});
      ElasticTrainer trainer(std::exchange(world, Group()), model.checkpoint(), options);
      std::set<std::uint64_t> left = discarded;
      train(trainer, model, plan, [&](Step& step, Phase phase) {
        if (phase == in && step.world().rank() == 1 && left.erase(step.number()) > 0) step.world().revoke();
      });
      expect(trainer.world().epoch() == discarded.size(), "a change for each discarded step");
      expect_equal_sums(trainer.world(), model);
      if (trainer.world().rank() == 0) sums = model.sums;
    });
    return sums;
  };
  const std::vector<double> undisturbed = trained(true, {}, Phase::before_commit);
  CHECK(undisturbed != trained(false, {}, Phase::before_commit));
  CHECK(undisturbed == trained(true, {2}, Phase::before_commit));
  CHECK(undisturbed == trained(true, {0, 5, 6, 11}, Phase::before_commit));
  CHECK(undisturbed == trained(true, {3}, Phase::before_average));
}

TEST_CASE("a step within which the epoch is revoked is done again") {
  const TrainingPlan plan{.steps = 5, .batch = 6};
  run_elastic(3, [&](Group& world) {
    Model model;
    int changes = 0;
    ElasticTrainerOptions options;
    options.on_change = [&](const MembershipChange& change) {
      ++changes;
      expect(change.lost.empty() && change.cause.code() == Errc::cancelled, "nobody is lost");
    };
    ElasticTrainer trainer(world, model.checkpoint(), options);
    world = Group();
    train(trainer, model, plan, [&](Step& step, Phase phase) {
      if (step.world().epoch() == 0 && step.number() == 2 && phase == Phase::before_average && step.world().rank() == 1)
        step.world().revoke();
    });
    expect(changes == 1 && trainer.world().epoch() == 1, "one change");
    model.expect_trained(plan);
  });
}

TEST_CASE("with fewer ranks than min_ranks a trainer ends when nobody has come in time, and says why") {
  run_elastic(3, [&](Group& world) {
    const int origin = world.rank();
    Model model;
    ElasticTrainer trainer(std::exchange(world, Group()), model.checkpoint(), {.min_ranks = 3, .min_wait = std::chrono::milliseconds(30)});
    try {
      train(trainer, model, {.steps = 5, .batch = 6}, [&](Step& step, Phase) {
        if (origin == 2 && step.number() == 2) throw Leaves();
      });
    } catch (const Leaves&) {
      return;
    } catch (const PeerLost& lost) {
      expect(std::string(lost.what()).find("2 ranks are left, and min_ranks is 3; in 0.03 s not enough have joined: ") == 0, lost.what());
      return;
    }
    throw std::runtime_error("no failure");
  });
}

TEST_CASE("with how few ranks to train is an option, or else the environment says it") {
  const auto is = [](const MinRanks& read, int count, std::chrono::milliseconds wait) { return read.count == count && read.wait == wait; };
  CHECK(is(read_min_ranks(), 1, std::chrono::minutes(10)));
  ::setenv("RINGLET_MIN_RANKS", "3", 1);
  ::setenv("RINGLET_MIN_WAIT_MS", "1500", 1);
  CHECK(is(read_min_ranks(), 3, std::chrono::milliseconds(1500)));
  CHECK(is(read_min_ranks({.min_ranks = 2}), 2, std::chrono::milliseconds(1500)));
  CHECK(is(read_min_ranks({.min_wait = std::chrono::seconds(2)}), 3, std::chrono::seconds(2)));
  ::setenv("RINGLET_MIN_RANKS", "many", 1);
  CHECK(failure_of<InvalidArgument>([] { (void)read_min_ranks(); }) ==
        "RINGLET_MIN_RANKS is 'many'; it must be a whole number from 1 to 1024");
  for (const char* name : {"RINGLET_MIN_RANKS", "RINGLET_MIN_WAIT_MS"}) ::unsetenv(name);
}

TEST_CASE("what a step may not do is refused") {
  Group world;
  Model model;
  const auto error_of = [&](const std::function<void(Step&)>& step) {
    ElasticTrainer trainer(world, model.checkpoint());
    return failure_of<InvalidArgument>([&] { trainer.run({.steps = 1, .batch = 1}, step); });
  };
  CHECK(error_of([](Step&) {}) == "the step function has returned without a call of commit()");
  CHECK(error_of([](Step& step) {
          step.commit([] {});
          step.commit([] {});
        }) == "commit() is called a second time in one step");
  CHECK(error_of([&](Step& step) {
          step.add(model.gradient);
          step.commit([] {});
        }) == "commit() before the added gradients hold their averages");
  CHECK(error_of([&](Step& step) {
          step.commit([] {});
          step.add(model.gradient);
        }) == "add() after commit()");
  CHECK(error_of([](Step& step) { step.commit({}); }) == "the function given to commit() is empty");

  const auto options_error = [&](ElasticTrainerOptions options) {
    return failure_of<InvalidArgument>([&] { ElasticTrainer(world, model.checkpoint(), std::move(options)); });
  };
  CHECK(options_error({.min_ranks = 0}) == "the option min_ranks is '0'; it must be a whole number from 1 to 1024");
  CHECK(options_error({.min_wait = std::chrono::milliseconds(-1)}).find("the option min_wait is -1 ms; it must be 0 to") == 0);
  CHECK(options_error({.average = {.weight = 2}}).find("average.weight is set") != std::string::npos);
  CHECK(options_error({.checkpoint_every = 5}).find("without the directory") != std::string::npos);
  CHECK(options_error({.keep = 0}) == "keep is 0; at least one checkpoint must be kept");
  ElasticTrainer trainer(world, model.checkpoint());
  CHECK(failure_of<InvalidArgument>([&] { trainer.run({.steps = 1, .batch = 0}, [](Step&) {}); }).find("batch is 0") != std::string::npos);

  Checkpoint sharded;
  const Tree parameters{{"sums", model.sums}};
  sharded.add_sharded("model", parameters, ShardLayout(parameters, 1));
  CHECK(failure_of<InvalidArgument>([&] { ElasticTrainer(world, sharded); }).find("'model.sums' is sharded") == 0);
}

TEST_CASE("a trainer saves, and other ranks go on from there") {
  const test::TemporaryDirectory scratch;
  const std::filesystem::path directory = scratch.path();
  const auto part = [&](int size, std::uint64_t steps, std::uint64_t begin, bool elastic) {
    test::run_ranks(
        size,
        [&](Group& world) {
          Model model;
          std::uint64_t began_at = 0;
          ElasticTrainerOptions options{.checkpoint = directory, .checkpoint_every = 3, .keep = 10};
          options.on_state = [&](const Checkpoint& state, std::uint64_t step) {
            began_at = step;
            expect(state.get<std::int64_t>("last") == static_cast<std::int64_t>(step), "a value that was set in apply");
          };
          ElasticTrainer trainer(world, model.checkpoint(), options);
          const TrainingPlan plan{.steps = steps, .batch = 8};
          train(trainer, model, plan, [&](Step& step, Phase phase) {
            if (phase == Phase::in_apply) trainer.state().set("last", static_cast<std::int64_t>(step.number() + 1));
          });
          expect(began_at == begin, "the first step");
          model.expect_trained(plan);
        },
        [&](native::WorldConfig& config) { config.options.elastic = elastic; });
  };
  part(3, 4, 0, true);
  CHECK(std::filesystem::exists(directory / "step-00000003"));
  CHECK(std::filesystem::exists(directory / "step-00000004"));
  part(1, 5, 4, false);
  part(4, 11, 5, true);
  CHECK(std::filesystem::exists(directory / "step-00000009"));
  CHECK(std::filesystem::exists(directory / "step-00000011"));
}

TEST_CASE("a rank that is lost while the others save costs neither the checkpoint nor a step") {
  for (const int leaver : {0, 1, 2}) {
    const test::TemporaryDirectory scratch;
    const std::filesystem::path directory = scratch.path();
    const TrainingPlan plan{.steps = 9, .batch = 6};
    run_elastic(3, [&](Group& world) {
      const int origin = world.rank();
      Model model;
      ElasticTrainer trainer(std::exchange(world, Group()), model.checkpoint(),
                             {.checkpoint = directory, .checkpoint_every = 3, .keep = 10});
      try {
        // It goes just before the save, which it begins no more, and which the others have begun.
        train(trainer, model, plan, [&](Step& step, Phase phase) {
          if (origin == leaver && step.number() == 5 && phase == Phase::after_commit) throw Leaves();
        });
      } catch (const Leaves&) {
        return;
      }
      model.expect_trained(plan);
    });
    for (const char* step : {"step-00000003", "step-00000006", "step-00000009"}) CHECK(std::filesystem::exists(directory / step));
    test::run_ranks(2, [&](Group& world) {
      Model model;
      Checkpoint state = model.checkpoint();
      expect(load_checkpoint(world, directory, state, {.step = 6}) == 6, "the step that was disturbed");
      model.expect_trained({.steps = 6, .batch = 6});
    });
  }
}

TEST_CASE("a rank whose apply throws gets the state of the others when it runs again") {
  // In a group that is not elastic, so that it can stay.
  test::run_ranks(2, [](Group& world) {
    Model model;
    const TrainingPlan plan{.steps = 3, .batch = 4};
    ElasticTrainer trainer(world, model.checkpoint());
    bool threw = false;
    const auto at = [&](Step& step, Phase phase) {
      if (step.number() == 2 && phase == Phase::in_apply && world.rank() == 1 && !std::exchange(threw, true)) {
        model.sums[0] = -1;
        throw Leaves();
      }
    };
    try {
      train(trainer, model, {.steps = 3, .batch = 4}, at);
    } catch (const Leaves&) {
    }
    expect(threw == (world.rank() == 1), "it threw");
    trainer.run(plan, [](Step&) { throw std::runtime_error("rank 0 had committed it"); });
    expect(trainer.step() == 3, "the steps");
    model.expect_trained(plan);
  });
}
