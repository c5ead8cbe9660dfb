// Tests of the second holders' rows, which come in slices after a loss. The slices are a row or a few long, so that the rebuild takes many
// steps, in whose midst others go and join.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/sharding/row_spread.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/ranks.hpp"
#include "tests/native/sharded_training.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr std::uint64_t kFirstLoss = 2;  // the step in which the first of four ranks goes

RowSpread spread_of(int ranks) {
  std::vector<int> machines;
  for (int rank = 0; rank < ranks; ++rank) machines.push_back(rank);
  return {std::vector<double>(machines.size(), 1.0), machines, 2};
}

/// What the second holders of three ranks lack after each step, from the first one on that the three have taken, of four of which one is
/// lost.
class ExpectedRebuild {
 public:
  ExpectedRebuild(bool shards_parameters, int leaver, std::size_t bytes) {
    const ShardedModel model;
    // The tensors' order is that of the modules, and they have no other names.
    const RowSpread after = spread_of(3);
    std::vector<int> now;
    for (int rank = 0; rank < 4; ++rank) now.push_back(rank == leaver ? -1 : rank - (rank > leaver ? 1 : 0));
    std::string lost;
    const auto all = plan_row_moves(model.parameters, spread_of(4), {}, now, after, RowSource::own, lost);
    expect(all.has_value(), lost);
    for (const RowMove& move : *all)
      if (move.target_place == 1 && move.source != move.target) waiting_.push_back(move);
    for (const Leaf& leaf : model.parameters) {
      const Shape& shape = leaf.values.shape();
      const std::size_t rows = shape.axes() == 0 ? 1 : static_cast<std::size_t>(shape[0]);
      row_bytes_.push_back(leaf.values.count() / rows * (shards_parameters ? 12 : 8));
    }
    for (bool is_first = true; !waiting_.empty() || is_first; is_first = false) {
      (void)take_row_moves(waiting_, row_bytes_, 3, bytes);
      // From the second slice on the first holders send.
      for (RowMove& move : waiting_) move.source = after.shard_at(move.target, 1), move.source_place = 0;
      missing_.push_back(waiting_);
    }
  }
  /// After so many steps of the three ranks, at least one.
  std::size_t bytes_after(std::size_t steps) const {
    std::size_t bytes = 0;
    for (const RowMove& move : missing_after(steps)) bytes += row_bytes_[move.tensor] * static_cast<std::size_t>(move.rows.count());
    return bytes;
  }
  bool needs(int rank, std::size_t steps) const {
    const auto& missing = missing_after(steps);
    return std::any_of(missing.begin(), missing.end(), [&](const RowMove& move) { return move.source == rank; });
  }
  std::size_t steps() const { return missing_.size(); }

 private:
  const std::vector<RowMove>& missing_after(std::size_t steps) const { return missing_[std::min(steps, missing_.size()) - 1]; }
  std::vector<RowMove> waiting_;
  std::vector<std::size_t> row_bytes_;
  std::vector<std::vector<RowMove>> missing_;  // after the first step, and so on
};

/// Of four ranks one goes in the third step, and one of the other three in another step, while second holders are rebuilt.
struct TwoLosses {
  bool shards_parameters = false;
  std::int64_t bytes = 1;     // of a slice
  int first = 0, second = 0;  // as ranks of the four and of the three
  std::uint64_t step = 0;     // of the second loss
  Phase phase{};

  /// Whether the second loss, after so many steps of the three, is one of rows.
  bool loses_rows(const ExpectedRebuild& expected, std::size_t steps_of_three) const {
    if (steps_of_three > 0) return expected.needs(second, steps_of_three);
    // The rows are still those of four, of which each is the second holder of the one before it.
    return (second >= first ? second + 1 - first : first - second) != 2;
  }
};

/// Returns whether training went back.
bool lose_two(const TwoLosses& losses, const ExpectedRebuild& expected) {
  std::atomic<std::uint64_t> went_back_from = 0;
  const TemporaryDirectory scratch;
  Chronicle chronicle;
  const std::uint64_t steps = losses.step + 3;
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    Conduct conduct{.steps = steps,
                    .shards_parameters = losses.shards_parameters,
                    .fsdp = {.rebuild_size = losses.bytes, .max_norm = 20.0},
                    .trainer = {.checkpoint = scratch.path(), .checkpoint_every = 2},
                    .chronicle = &chronicle};
    ElasticShards* shards = nullptr;
    conduct.at_begin = [&](ElasticShards& its) { shards = &its; };
    conduct.at = [&](Step& step, Phase now) {
      if (step.world().size() == 4 && origin == losses.first && now == Phase::before_average && step.number() == kFirstLoss) throw Leaves();
      if (step.world().size() != 3) return;
      if (now == Phase::after_commit) {
        const std::size_t bytes = expected.bytes_after(step.number() - kFirstLoss + 1);
        expect(shards->bytes_to_rebuild() == bytes,
               [&] { return std::to_string(shards->bytes_to_rebuild()) + " bytes are missing, not " + std::to_string(bytes); });
      }
      if (step.world().rank() == losses.second && now == losses.phase && step.number() == losses.step) throw Leaves();
    };
    conduct.trainer.on_rollback = [&](const Rollback& rollback) {
      chronicle.go_back(rollback.to);
      went_back_from = rollback.from;
    };
    conduct.at_end = [](ElasticTrainer& trainer, ElasticShards&) { expect(trainer.world().size() == 2, "two are left"); };
    train(std::exchange(world, Group()), conduct);
  });
  CHECK(chronicle.steps().size() == steps);
  CHECK_FALSE(first_step_that_differs(chronicle.steps(), 20.0));
  const bool went_back = went_back_from > 0;
  const auto of_three = [](const CommittedStep& step) { return step.ranks == 3; };
  const std::size_t steps_of_three =
      went_back ? went_back_from - kFirstLoss
                : static_cast<std::size_t>(std::count_if(chronicle.steps().begin(), chronicle.steps().end(), of_three));
  // The step of the second loss is taken where all have its averages.
  const std::size_t before = losses.step - kFirstLoss;
  CHECK(steps_of_three >= before + (losses.phase > Phase::before_commit ? 1 : 0));
  CHECK(steps_of_three <= before + (losses.phase > Phase::before_average ? 1 : 0));
  CHECK(went_back == losses.loses_rows(expected, steps_of_three));
  return went_back;
}

}  // namespace

TEST_CASE(
    "while second holders are rebuilt a loss costs no step where its rows were rebuilt, in whatever phase of a step, else it says so") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  std::uint64_t kept = 0, lost = 0;
  Cases cases;
  for (int first = 0; first < 4; ++first)
    for (int second = 0; second < 3; ++second) {
      const std::int64_t bytes = 100;
      const ExpectedRebuild expected(shards_parameters, first, bytes);
      // The phases take turns, so that all are in all steps of a rebuild.
      for (std::uint64_t step = kFirstLoss; step <= kFirstLoss + expected.steps(); ++step) {
        if (!cases.has_next()) continue;
        const TwoLosses losses{shards_parameters, bytes, first, second, step, kPhases.begin()[(step + first + second) % kPhases.size()]};
        CAPTURE(first, second, step, losses.phase);
        ++(lose_two(losses, expected) ? lost : kept);
      }
    }
  CHECK((takes_part_of_seeds() || (kept > 15 && lost > 5)));
}

TEST_CASE("a row at a time, all second holders are rebuilt") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  for (int leaver = 0; leaver < 4; ++leaver) {
    CAPTURE(leaver);
    const ExpectedRebuild expected(shards_parameters, leaver, 1);
    Chronicle chronicle;
    const std::uint64_t steps = kFirstLoss + expected.steps() + 2;
    run_elastic(4, [&](Group& world) {
      const int origin = world.rank();
      Conduct conduct{.steps = steps, .shards_parameters = shards_parameters, .fsdp = {.rebuild_size = 1}, .chronicle = &chronicle};
      conduct.at = [&](Step& step, Phase now) {
        if (origin == leaver && now == Phase::before_average && step.number() == kFirstLoss) throw Leaves();
      };
      conduct.at_end = [&](ElasticTrainer& trainer, ElasticShards& shards) {
        const int rank = trainer.world().rank();
        expect(shards.bytes_to_rebuild() == 0, "none is missing");
        expect(shards.state_bytes() == 8 * (shards.layout().count(rank) + shards.layout().count((rank + 2) % 3)), "all rows are here");
      };
      train(std::exchange(world, Group()), conduct);
    });
    CHECK(chronicle.steps().size() == steps);
    CHECK_FALSE(first_step_that_differs(chronicle.steps(), std::nullopt));
  }
}

TEST_CASE("a rank joins while second holders are rebuilt, and all rows have two holders from its first step on") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  constexpr std::uint64_t kSteps = 300;
  Chronicle chronicle;
  std::optional<Process> newcomer;
  const auto rebuilds = [&](Step& step, Phase now, const ElasticShards& shards) {
    if (now != Phase::after_commit || step.number() < kFirstLoss) return;
    expect(step.world().size() == 3 || shards.bytes_to_rebuild() == 0, "all rows are there twice");
  };
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    Conduct conduct{.steps = kSteps, .shards_parameters = shards_parameters, .fsdp = {.rebuild_size = 1}, .chronicle = &chronicle};
    ElasticShards* shards = nullptr;
    conduct.at_begin = [&](ElasticShards& its) { shards = &its; };
    conduct.at = [&](Step& step, Phase now) {
      rebuilds(step, now, *shards);
      if (now != Phase::before_average) return;
      if (origin == 0 && step.number() == kFirstLoss) throw Leaves();
      // A busy machine gets more time.
      if (step.number() > kFirstLoss && step.world().size() == 3) pass(std::chrono::milliseconds(step.number() < kSteps / 2 ? 1 : 100));
      if (step.number() != kFirstLoss + 1 || step.world().rank() != 0 || newcomer) return;
      newcomer.emplace([&, door = step.world().door()] {
        Conduct its{.steps = kSteps, .shards_parameters = shards_parameters, .fsdp = {.rebuild_size = 1}, .chronicle = &chronicle};
        its.at_end = [](ElasticTrainer& trainer, ElasticShards&) { expect(trainer.world().size() == 4, "it has joined"); };
        train(init(joiner_options(door)), its);
      });
    };
    train(std::exchange(world, Group()), conduct);
  });
  newcomer->join();
  CHECK(chronicle.steps().size() == kSteps);
  CHECK_FALSE(first_step_that_differs(chronicle.steps(), std::nullopt));
  CHECK(chronicle.steps().back().ranks == 4);
}
