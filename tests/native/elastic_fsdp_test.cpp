// Tests of sharded state that outlives the ranks that hold it.
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/seeds.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/joiners.hpp"
#include "tests/native/ranks.hpp"
#include "tests/native/sharded_training.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using test::Chronicle;
using test::Conduct;
using test::expect;
using test::kPhases;
using test::Leaves;
using test::Phase;
using test::run_elastic;
using test::train;

namespace {

/// All steps, each as in an undisturbed run.
void check_history(const Chronicle& chronicle, std::uint64_t steps, std::optional<double> max_norm = {}) {
  CHECK(chronicle.steps().size() == steps);
  CHECK_FALSE(test::first_step_that_differs(chronicle.steps(), max_norm));
}

/// The elements of the model, and of a rank's rows of it.
std::size_t elements_at(const ElasticShards& fsdp, int rank) { return fsdp.layout().count(rank); }

}  // namespace

TEST_CASE("a trainer with shards does what FSDP does, with any number of ranks, copies and clipping") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  for (const int size : {1, 2, 3, 4})
    for (const int copies : {1, 2})
      for (const std::optional<double> max_norm : {std::optional<double>(), std::optional(10.0)}) {
        CAPTURE(size, copies, max_norm.has_value());
        Chronicle chronicle;
        run_elastic(size, [&](Group& world) {
          train(std::exchange(world, Group()),
                {.shards_parameters = shards_parameters, .fsdp = {.copies = copies, .max_norm = max_norm}, .chronicle = &chronicle});
        });
        check_history(chronicle, 8, max_norm);
      }
}

TEST_CASE("whichever holder of rows goes, in whatever phase of a step, no step is lost") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  test::Cases cases;
  for (const int size : {2, 3, 4})
    for (int leaver = 0; leaver < size; ++leaver)
      for (const Phase phase : kPhases)
        for (const std::uint64_t at : {0, 3, 7}) {
          if (!cases.has_next()) continue;
          CAPTURE(size, leaver, phase, at);
          Chronicle chronicle;
          run_elastic(size, [&](Group& world) {
            const int origin = world.rank();
            Conduct conduct{
                .shards_parameters = shards_parameters, .fsdp = {.max_norm = 20.0}, .chronicle = &chronicle, .notes_last = false};
            conduct.at = [&](Step& step, Phase now) {
              if (origin == leaver && now == phase && step.number() == at) throw Leaves();
            };
            conduct.trainer.on_rollback = [](const Rollback&) { throw std::runtime_error("training went back"); };
            train(std::exchange(world, Group()), conduct);
          });
          check_history(chronicle, shards_parameters ? 7 : 8, 20.0);
        }
}

TEST_CASE("what rounding to blocks has left of a step that is discarded does not count") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  const auto trained = [&](bool feedback, const std::set<std::uint64_t>& discarded, Phase in) {
    Chronicle chronicle;
    run_elastic(3, [&](Group& world) {
      const Wire wire = Wire::int4({.feedback = feedback, .least_elements = 0});
      Conduct conduct{.steps = 10, .shards_parameters = shards_parameters, .fsdp = {.reduce_dtype = wire}, .chronicle = &chronicle};
      conduct.at = [&, left = discarded](Step& step, Phase now) mutable {
        if (now == in && step.world().rank() == 1 && left.erase(step.number()) > 0) step.world().revoke();
      };
      conduct.at_end = [&](ElasticTrainer& trainer, ElasticShards&) {
        expect(trainer.world().epoch() == discarded.size(), "a change for each discarded step");
      };
      train(std::exchange(world, Group()), conduct);
    });
    std::vector<std::uint64_t> hashes;
    for (const test::CommittedStep& step : chronicle.steps()) hashes.push_back(step.hash);
    CHECK(hashes.size() == 10);
    return hashes;
  };
  const auto undisturbed = trained(true, {}, Phase::before_commit);
  CHECK(undisturbed != trained(false, {}, Phase::before_commit));
  CHECK(undisturbed == trained(true, {2}, Phase::before_commit));
  CHECK(undisturbed == trained(true, {0, 5, 6, 9}, Phase::before_commit));
  CHECK(undisturbed == trained(true, {3}, Phase::before_average));
}

TEST_CASE("a training with shards that was stopped has the bits of one that was not, with what rounding has left of its gradients") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  const auto trained = [&](const std::vector<std::uint64_t>& stops) {
    const test::TemporaryDirectory scratch;
    Chronicle chronicle;
    for (const std::uint64_t steps : stops)
      run_elastic(3, [&](Group& world) {
        const Wire wire = Wire::int4({.feedback = true, .least_elements = 0});
        train(std::exchange(world, Group()), {.steps = steps,
                                              .shards_parameters = shards_parameters,
                                              .fsdp = {.reduce_dtype = wire},
                                              .trainer = {.checkpoint = scratch.path()},
                                              .chronicle = &chronicle});
      });
    std::vector<std::uint64_t> hashes;
    for (const test::CommittedStep& step : chronicle.steps()) hashes.push_back(step.hash);
    return hashes;
  };
  const auto undisturbed = trained({10});
  CHECK(undisturbed.size() == 10);
  CHECK(undisturbed == trained({4, 10}));
  CHECK(undisturbed == trained({1, 2, 9, 10}));
}

TEST_CASE("with gradients in blocks the others go on with the same bits, without what was left at the rank that is lost") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  Chronicle chronicle;  // refuses ranks that differ
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    const Wire wire = Wire::int8({.feedback = true, .least_elements = 0});
    Conduct conduct{.steps = 14, .shards_parameters = shards_parameters, .fsdp = {.reduce_dtype = wire}, .chronicle = &chronicle};
    conduct.at = [&](Step& step, Phase now) {
      if (origin > 0 && now == static_cast<Phase>(origin) && step.number() == static_cast<std::uint64_t>(3 * origin)) throw Leaves();
    };
    train(std::exchange(world, Group()), conduct);
  });
  CHECK(chronicle.steps().size() == 14);
  CHECK(chronicle.steps().back().ranks == 1);
}

TEST_CASE("holders of rows go one after the other, to the last") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  Chronicle chronicle;
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    Conduct conduct{.steps = 14, .shards_parameters = shards_parameters, .chronicle = &chronicle};
    conduct.at = [&](Step& step, Phase now) {
      if (origin > 0 && now == static_cast<Phase>(origin) && step.number() == static_cast<std::uint64_t>(3 * origin)) throw Leaves();
    };
    conduct.at_end = [](ElasticTrainer& trainer, ElasticShards&) { expect(trainer.world().size() == 1, "one is left"); };
    train(std::exchange(world, Group()), conduct);
  });
  check_history(chronicle, 14);
}

TEST_CASE("a rank that goes before the rows are spread anew costs no step while each row has a holder") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  // Rank 3's second holder is rank 0, and rank 1's rank 2.
  for (const std::uint64_t at : {0, 4}) {
    Chronicle chronicle;
    run_elastic(4, [&](Group& world) {
      const int origin = world.rank();
      Conduct conduct{.shards_parameters = shards_parameters, .chronicle = &chronicle};
      conduct.at = [&](Step& step, Phase now) {
        if (origin == 1 && now == Phase::before_commit && step.number() == at) throw Leaves();
      };
      conduct.trainer.on_change = [&](const MembershipChange&) {
        if (origin == 3) throw Leaves();
      };
      train(std::exchange(world, Group()), conduct);
    });
    check_history(chronicle, 8);
    CHECK(chronicle.steps().back().ranks == 2);
  }
}

TEST_CASE("where both holders of a row go, training goes back to the newest checkpoint, and says so") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  for (const Phase phase : {Phase::before_average, Phase::before_commit, Phase::after_update}) {
    CAPTURE(phase);
    const test::TemporaryDirectory scratch;
    std::latch all_are_there(4);
    run_elastic(4, [&](Group& world) {
      const int origin = world.rank();
      bool has_gone_back = false, was_there = false;
      Conduct conduct{.shards_parameters = shards_parameters, .trainer = {.checkpoint = scratch.path(), .checkpoint_every = 3}};
      conduct.at = [&](Step& step, Phase now) {
        if (now != phase || step.number() != 5 || std::exchange(was_there, true)) return;
        all_are_there.count_down();
        if (origin != 1 && origin != 2) return;
        all_are_there.wait();
        throw Leaves();
      };
      conduct.trainer.on_rollback = [&](const Rollback& rollback) {
        has_gone_back = true;
        // All have the averages then, so those who are left commit the step.
        const std::uint64_t done = phase == Phase::before_average ? 5 : 6;
        expect(rollback.from == done && rollback.to == 3,
               [&] { return "from " + std::to_string(rollback.from) + " to " + std::to_string(rollback.to); });
        expect(rollback.lost.find("the rows ") == 0, rollback.lost);
      };
      conduct.trainer.on_state = [](const Checkpoint& state, std::uint64_t step) {
        expect(state.get<std::int64_t>("seed") == 3 && step == 3, "the state");
      };
      conduct.at_end = [&](ElasticTrainer& trainer, ElasticShards& fsdp) {
        expect(has_gone_back && trainer.world().size() == 2, "it went back");
        expect(fsdp.state_bytes() == 8 * (elements_at(fsdp, 0) + elements_at(fsdp, 1)), "both copies are here again");
      };
      train(std::exchange(world, Group()), conduct);
    });
  }
}

TEST_CASE("with one copy of the rows each loss is one of rows, and without a checkpoint it ends the training") {
  run_elastic(3, [](Group& world) {
    const int origin = world.rank();
    Conduct conduct{.fsdp = {.copies = 1}};
    conduct.at = [&](Step& step, Phase now) {
      if (origin == 1 && now == Phase::before_commit && step.number() == 2) throw Leaves();
    };
    try {
      expect(!train(std::exchange(world, Group()), conduct), "the others went on");
    } catch (const PeerLost& lost) {
      expect(std::string(lost.what()).find("are lost with all ranks that held them, and there is no checkpoint to go back to") !=
                 std::string::npos,
             lost.what());
    }
  });
}

TEST_CASE("a training with shards is saved, and other ranks go on from there") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  const test::TemporaryDirectory scratch;
  Chronicle chronicle;
  const auto part = [&](int size, int copies, std::uint64_t steps) {
    run_elastic(size, [&](Group& world) {
      train(std::exchange(world, Group()), {.steps = steps,
                                            .shards_parameters = shards_parameters,
                                            .fsdp = {.copies = copies},
                                            .trainer = {.checkpoint = scratch.path()},
                                            .chronicle = &chronicle});
    });
  };
  part(3, 2, 4);
  part(2, 1, 6);
  part(4, 2, 9);
  part(1, 2, 11);
  check_history(chronicle, 11);
}

TEST_CASE("ranks join a training with shards, and take their rows of it") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  constexpr std::uint64_t kSteps = 300;
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    Chronicle chronicle;
    std::optional<test::Process> newcomer;
    const auto slowly = [&](Step& step, Phase now) {
      if (now != Phase::before_average || step.world().size() > size) return;
      // A busy machine gets more time.
      test::pass(std::chrono::milliseconds(step.number() < kSteps / 2 ? 1 : 100));
      if (step.number() != 5 || step.world().rank() != 0 || newcomer) return;
      newcomer.emplace([&, door = step.world().door()] {
        Conduct conduct{.steps = kSteps, .shards_parameters = shards_parameters, .chronicle = &chronicle};
        conduct.at_end = [&](ElasticTrainer& trainer, ElasticShards& fsdp) {
          expect(trainer.world().size() == size + 1 && elements_at(fsdp, size) > 0, "it has joined, and has rows");
        };
        train(init(test::joiner_options(door)), conduct);
      });
    };
    run_elastic(size, [&](Group& world) {
      train(std::exchange(world, Group()),
            {.steps = kSteps, .shards_parameters = shards_parameters, .at = slowly, .chronicle = &chronicle});
    });
    newcomer->join();
    check_history(chronicle, kSteps);
    CHECK(chronicle.steps().back().ranks == size + 1);
  }
}

TEST_CASE("rows are shared by weight, also after a loss, and who has the weight 0 holds none") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    const std::vector<double> weights{3, 1, 0, 2};
    Conduct conduct{.shards_parameters = shards_parameters, .fsdp = {.shard_weight = weights[static_cast<std::size_t>(origin)]}};
    conduct.at = [&](Step& step, Phase now) {
      if (origin == 0 && now == Phase::before_commit && step.number() == 4) throw Leaves();
    };
    conduct.at_end = [&](ElasticTrainer& trainer, ElasticShards& fsdp) {
      // Ranks 1, 2 and 3 are left, as 0, 1 and 2; 40 rows are laid out as 13, 0 and 27.
      const ShardLayout layout = fsdp.layout();
      const std::string large = shards_parameters ? "rest.large" : "large";
      expect(layout.rows(large, 0) == RowRange{0, 13} && layout.rows(large, 2) == RowRange{13, 40}, "the rows");
      expect(layout.count(1) == 0, "none at the weight 0");
      const std::size_t held = trainer.world().rank() == 1 ? 0 : layout.count(0) + layout.count(2);
      expect(fsdp.state_bytes() == 8 * held, "what it holds");
    };
    train(std::exchange(world, Group()), conduct);
  });
}

TEST_CASE("the second holders cost as much memory as the first") {
  const bool shards_parameters = GENERATE(false, true);
  CAPTURE(shards_parameters);
  for (const int copies : {1, 2})
    run_elastic(4, [&](Group& world) {
      train(
          std::exchange(world, Group()),
          {.shards_parameters = shards_parameters, .fsdp = {.copies = copies}, .at_end = [&](ElasticTrainer& trainer, ElasticShards& fsdp) {
             const int rank = trainer.world().rank();
             std::size_t held = elements_at(fsdp, rank);
             if (copies == 2) held += elements_at(fsdp, (rank + 3) % 4);
             expect(fsdp.state_bytes() == 8 * held, [&] { return std::to_string(fsdp.state_bytes()); });
           }});
    });
}
