// Tests of ranks that join a training with other settings than its ranks have.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/ranks.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;
using test::run_elastic;

namespace {

constexpr int kOwnRanks = 2;
constexpr std::uint64_t kStepsAfter = 10;

struct Stopped {};

/// What a rank trains, and how.
struct Program {
  TrainingPlan plan{.steps = 1'000'000, .batch = 6};
  std::size_t elements = 3;
  ElasticTrainerOptions options{};
  ElasticFsdpOptions shards{};
  double learning_rate = 0.5;
  bool is_sharded = false;
  bool is_no_trainer = false;  // it adds numbers instead
};

/// Trains as `program` says.
void train(Group world, const Program& program, const std::function<void(const Step&)>& after_commit,
           const std::function<void(const MembershipChange&)>& on_change = {}) {
  std::vector<float> weights(program.elements), gradient(program.elements, 1);
  while (program.is_no_trainer) world.all_sum(TensorView(weights));
  const Tree parameters{{"weights", weights}}, gradients{{"weights", gradient}};
  ElasticTrainerOptions options = program.options;
  options.on_change = on_change;
  std::optional<ElasticFsdp> shards;
  std::optional<ElasticTrainer> trainer;
  if (program.is_sharded) {
    shards.emplace(world, parameters, [&] { return std::make_unique<Adam>(program.learning_rate); }, program.shards);
    trainer.emplace(std::exchange(world, Group()), Checkpoint(), *shards, options);
  } else {
    Checkpoint state;
    state.add("model", parameters);
    trainer.emplace(std::exchange(world, Group()), std::move(state), options);
  }
  trainer->run(program.plan, [&](Step& step) {
    if (shards) shards->average(gradients);
    step.commit([&] {
      if (shards) shards->update();
    });
    after_commit(step);
  });
}

/// Two ranks train as `ours`, one that trains as `its` comes, and they go on without it. Returns what it and the two are told of it.
std::vector<std::string> told_where_one_comes(const Program& ours, const Program& its) {
  std::mutex mutex;
  std::vector<std::string> texts;
  std::list<test::Process> joined;
  run_elastic(kOwnRanks, [&](Group& world) {
    const int rank = world.rank();
    std::optional<std::uint64_t> lost_at;
    const auto after_commit = [&](const Step& step) {
      if (step.number() == 5 && rank == 0)
        joined.emplace_back([&, door = step.world().door()] {
          const std::string own = failure_of<MismatchError>([&] {
            const Group group = init(test::joiner_options(door));
            train(group, its, [](const Step&) { throw std::runtime_error("a rank with other settings takes a step"); });
          });
          const std::lock_guard lock(mutex);
          texts.push_back(own);
        });
      if (lost_at && step.number() == *lost_at + kStepsAfter) throw Stopped();
    };
    const auto on_change = [&](const MembershipChange& change) {
      if (change.joined > 0) return expect(change.world.size() == kOwnRanks + 1, "one has come");
      expect(change.world.size() == kOwnRanks && change.lost == std::vector<int>{kOwnRanks},
             [&] { return std::to_string(change.world.size()) + " are left: " + change.cause.text(); });
      const Errc code = its.is_no_trainer ? Errc::peer_lost : Errc::mismatch;
      expect(change.cause.code() == code && change.cause.rank() == kOwnRanks, [&] { return change.cause.text(); });
      lost_at = change.step;
      const std::lock_guard lock(mutex);
      texts.push_back(change.cause.text());
    };
    try {
      train(std::exchange(world, Group()), ours, after_commit, on_change);
    } catch (const Stopped&) {
    }
  });
  for (test::Process& rank : joined) rank.join();
  return texts;
}

void expect_told(const Program& ours, const Program& its, const std::string& part) {
  CAPTURE(part);
  const std::vector<std::string> texts = told_where_one_comes(ours, its);
  CHECK(texts.size() == kOwnRanks + 1);
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("whoever comes with another plan or state leaves, and the others go on") {
  const Program ours;
  expect_told(ours, {.plan = {.steps = 999'999, .batch = 6}},
              "rank 0 is to train 1000000 steps of 6 samples without checkpoints, and rank 2 is to train 999999 steps of 6 samples");
  expect_told(ours, {.plan = {.steps = 1'000'000, .batch = 5}}, "rank 2 is to train 1000000 steps of 5 samples");
  expect_told(ours, {.elements = 4}, "model.weights");
  expect_told(ours, {.is_sharded = true}, "rank 2 is to train 1000000 steps of 6 samples of sharded state");
  // A checkpoint of another case would be loaded.
  const test::TemporaryDirectory first, second, third;
  const auto saving = [](const test::TemporaryDirectory& directory, std::uint64_t every, int keep) {
    Program program;
    program.options.checkpoint = directory.path();
    program.options.checkpoint_every = every;
    program.options.keep = keep;
    return program;
  };
  expect_told(ours, saving(first, 0, 2), "samples with a checkpoint at the end");
  expect_told(saving(second, 1000, 2), saving(second, 100, 2),
              "rank 2 is to train 1000000 steps of 6 samples with a checkpoint every 100 steps");
  expect_told(saving(third, 1000, 2), saving(third, 1000, 3), "of which it keeps 3");
}

TEST_CASE("a program that trains nothing, and joins those who do, is told so, and they go on") {
  for (const bool is_sharded : {false, true})
    expect_told({.is_sharded = is_sharded}, {.is_no_trainer = true}, "ranks disagree about operation 0");
}

TEST_CASE("whoever comes with other options of sharded state leaves, and the others go on") {
  const Program ours{.is_sharded = true};
  expect_told(ours, {.learning_rate = 0.25, .is_sharded = true}, "rank 2 has the learning rate 0.25 at step ");
  expect_told(ours, {.shards = {.max_norm = 1}, .is_sharded = true}, "rank 0 has max_norm unset, rank 2 has max_norm 1");
  expect_told(ours, {.shards = {.communication_size = 1}, .is_sharded = true}, "rank 2 has communication_size 1");
  expect_told(ours, {.shards = {.reduce_dtype = DType::bf16}, .is_sharded = true}, "rank 2 has reduce_dtype bf16");
}

TEST_CASE("where the ranks of a new training differ, all are told the same") {
  for (const bool is_sharded : {false, true}) {
    std::mutex mutex;
    std::vector<std::string> texts;
    run_elastic(3, [&](Group& world) {
      Program program{.is_sharded = is_sharded};
      if (world.rank() == 1 && is_sharded) program.learning_rate += 1;
      if (world.rank() == 1 && !is_sharded) program.plan.batch += 1;
      const std::string told = failure_of<MismatchError>([&] { train(world, program, [](const Step&) {}); });
      const std::lock_guard lock(mutex);
      texts.push_back(told);
    });
    CHECK((texts.size() == 3 && texts[0] == texts[1] && texts[1] == texts[2]));
    CHECK(texts[0].find(is_sharded ? "rank 1 has the learning rate 1.5 at step 0" : "rank 1 is to train 1000000 steps of 7") !=
          std::string::npos);
  }
}

TEST_CASE("the most ranks that one of them demands count") {
  run_elastic(3, [](Group& world) {
    const int rank = world.rank();
    Program program;
    program.options.min_wait = std::chrono::milliseconds(30);
    if (rank == 1) program.options.min_ranks = 3;
    try {
      train(std::exchange(world, Group()), program, [&](const Step& step) {
        expect(step.world().size() == 3, "no step of two ranks");
        if (rank == 2 && step.number() == 3) throw Stopped();
      });
    } catch (const Stopped&) {
      return;
    } catch (const PeerLost& lost) {
      return expect(std::string(lost.what()).find("2 ranks are left, and min_ranks is 3") == 0, lost.what());
    }
    throw std::runtime_error("no failure");
  });
}
