#pragma once

#include <functional>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <utility>

#include "tests/native/expect.hpp"
#include "tests/native/sharded_model.hpp"

namespace ringlet::test {

/// When a rank goes away within a step.
enum class Phase : std::uint8_t { before_average, before_commit, in_commit, after_update, after_commit };
inline constexpr auto kPhases = {Phase::before_average, Phase::before_commit, Phase::in_commit, Phase::after_update, Phase::after_commit};

struct Leaves {};

/// What a rank of a training is told, and does.
struct Conduct {
  std::uint64_t steps = 8;
  bool shards_parameters = false;
  ElasticFsdpOptions fsdp{};
  ElasticTrainerOptions trainer{};
  std::function<void(ElasticShards&)> at_begin{};
  std::function<void(Step&, Phase)> at{};  // called in each phase of each attempt
  Chronicle* chronicle = nullptr;
  std::function<void(ElasticTrainer&, ElasticShards&)> at_end{};
  bool notes_last = true;  // where parameters are sharded, for which all ranks have to be there at the end

  bool notes_at_once() const { return !shards_parameters; }
};

/// One rank's training. Returns false if the rank left. The parameters after a step are noted once they are complete on this rank: when its
/// commit has returned, or the next step begins.
inline bool train(Group world, const Conduct& conduct) {
  ShardedModel model;
  ModelShards sharded(world, model, conduct.shards_parameters, conduct.fsdp);
  std::optional<int> ranks;  // how many took the last step, while it is not noted
  ElasticTrainerOptions options = conduct.trainer;
  options.on_rollback = [&](const Rollback& rollback) {
    ranks.reset();
    if (conduct.trainer.on_rollback) conduct.trainer.on_rollback(rollback);
  };
  ElasticTrainer trainer(std::move(world), Checkpoint().set("seed", 3), sharded.shards(), options);
  world = Group();
  if (conduct.at_begin) conduct.at_begin(sharded.shards());
  const auto pass = [&](Step& step, Phase phase) {
    if (conduct.at) conduct.at(step, phase);
  };
  const auto note = [&](std::uint64_t steps_done) {
    if (ranks && conduct.chronicle != nullptr) conduct.chronicle->note(steps_done - 1, *ranks, model.hash());
    ranks.reset();
  };
  try {
    trainer.run({.steps = conduct.steps, .batch = kShardedBatch}, [&](Step& step) {
      sharded.fetch();
      note(step.number());
      model.compute_gradients(step.number(), step.first(), step.count());
      pass(step, Phase::before_average);
      sharded.average();
      pass(step, Phase::before_commit);
      step.commit([&] {
        pass(step, Phase::in_commit);
        sharded.shards().update();
        ranks = step.world().size();
        pass(step, Phase::after_update);
      });
      if (conduct.notes_at_once()) note(step.number() + 1);
      pass(step, Phase::after_commit);
    });
  } catch (const Leaves&) {
    return false;
  }
  if (conduct.shards_parameters && conduct.notes_last) sharded.fetch();
  if (conduct.notes_at_once() || conduct.notes_last) note(trainer.step());
  expect(trainer.step() == conduct.steps && sharded.shards().step() == conduct.steps, "all steps");
  if (conduct.at_end) conduct.at_end(trainer, sharded.shards());
  return true;
}

}  // namespace ringlet::test
