// Processes that hold rows of sharded state are killed, in each phase of a step. What is left is compared, step for step and bit for bit,
// with FSDP that nobody disturbs.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/elastic_processes.hpp"
#include "tests/native/sharded_model.hpp"
#include "tests/shared_by_processes.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr int kRanks = 4;      // at the beginning, and at most
constexpr int kProcesses = 8;  // with those that join
constexpr std::uint64_t kMostSteps = 50'000;

/// How large the model's largest tensor is, and whether parameters are sharded, too. Gradients go by the ring only where they are in one
/// bucket, as those of the undisturbed run are, since it adds in another order.
struct Way {
  std::size_t elements;
  bool shards_parameters;
  std::int64_t rebuild_size = ElasticFsdpOptions().rebuild_size;
};
Way way_of(std::uint64_t seed) {
  const bool shards_parameters = seed % 3 == 0;
  return {seed % 2 != 0 ? 40U : shards_parameters ? 60'000U : 100'000U, shards_parameters};
}

/// Where in a step a process kills itself.
enum class Phase : std::uint8_t { never, average, vote, gather, spread };
constexpr std::array kDeadlyPhases{Phase::average, Phase::vote, Phase::gather};

/// What a process has after a step.
struct Record {
  std::atomic<std::uint64_t> hash;
  std::atomic<int> ranks;  // how many took the step; 0: this process did not commit it
};
struct Diary {
  std::array<Record, kMostSteps> records;
  std::atomic<int> steps, last_ranks;  // all that this process has committed, and how many took the last one
  std::array<char, 64> door;           // once it has committed a step
  std::atomic<Phase> fatal_phase;
  std::atomic<int> fatal_delay;  // ns, from when the phase begins
};
struct Crew {
  std::array<Diary, kProcesses> processes;
  std::atomic<bool> stop, has_gone_back;
};

struct Stopped {};

/// Trains until it is told to stop, in all processes after the same step.
void work(Group group, Diary& diary, Crew& crew, const Way& way) {
  ShardedModel model(way.elements);
  std::vector<float> stop(1);
  ModelShards sharded(group, model, way.shards_parameters,
                      {.rebuild_size = way.rebuild_size, .communication_size = 4096, .max_norm = 50.0});
  ElasticTrainerOptions options;
  options.on_rollback = [&](const Rollback&) { crew.has_gone_back = true; };
  const auto reach = [&](Phase phase) {
    if (diary.fatal_phase == phase) die_after(std::chrono::nanoseconds(diary.fatal_delay));
  };
  options.on_change = [&](const MembershipChange&) { reach(Phase::spread); };
  ElasticTrainer trainer(std::move(group), Checkpoint(), sharded.shards(), options);
  group = Group();
  // A step that is committed, but whose parameters are not complete: how many ranks took it.
  std::optional<int> ranks;
  const auto note = [&](std::uint64_t step) {
    if (!ranks) return;
    Record& record = diary.records[step];
    record.hash = model.hash();
    record.ranks = *ranks;
    diary.last_ranks = *ranks;
    ranks.reset();
    ++diary.steps;
  };
  try {
    trainer.run({.steps = kMostSteps, .batch = kShardedBatch}, [&](Step& step) {
      sharded.fetch();
      if (step.number() > 0) note(step.number() - 1);
      if (diary.door[0] == 0) step.world().door().copy(diary.door.data(), diary.door.size() - 1);
      model.compute_gradients(step.number(), step.first(), step.count());
      stop[0] = crew.stop ? 1 : 0;
      reach(Phase::average);
      step.average(Tree{{"stop", stop}});
      sharded.average();
      reach(Phase::vote);
      step.commit([&] {
        sharded.shards().update();
        ranks = step.world().size();
        reach(Phase::gather);
      });
      if (!way.shards_parameters) note(step.number());
      if (stop[0] > 0) throw Stopped();
    });
  } catch (const Stopped&) {
  }
}

/// The processes of a training, some of which come and some of which go.
class Town {
 public:
  Town(Crew& crew, const Way& way, const RankProcesses& processes) : crew_(crew), way_(way), processes_(processes) {
    const LoopbackSocket coordinator = open_loopback_socket();
    for (; started_ < kRanks; ++started_)
      here_.emplace(started_, start_rank(started_, coordinator, processes_, [this](Group group) { begin_work(std::move(group)); }));
    ::close(coordinator.descriptor);
  }
  std::size_t size() const { return here_.size(); }
  bool is_full() const { return started_ == kProcesses || size() == kRanks; }
  void grow() {
    std::string doors;
    for (const auto& [number, pid] : here_) doors += (doors.empty() ? "" : ",") + std::string(diary_of(number).door.data());
    here_.emplace(started_, start_newcomer(doors, processes_, [this](Group group) { begin_work(std::move(group)); }));
    ++started_;
  }
  /// Any process kills itself in a phase of its next step.
  void kill_one(SimRandom& random) {
    kill(std::next(here_.begin(), static_cast<std::ptrdiff_t>(random.below(here_.size())))->first, random);
  }
  /// Of the first four, one kills itself in a step, and another one, which has none of its rows, while the rows of that one are spread
  /// anew.
  void kill_two(SimRandom& random) {
    const int first = static_cast<int>(random.below(kRanks)), second = (first + 2) % kRanks;
    doom(second, Phase::spread, random.below(1'500'000));
    doom(first, kDeadlyPhases[random.below(kDeadlyPhases.size())], random.below(150'000));
    bury(first);
    bury(second);
  }
  /// Of the first four, one kills itself in a step. Returns another one, which then has no rows but such as have two holders still: while
  /// second holders are rebuilt it sends rows to a third one, or gets some.
  int kill_one_of_four(SimRandom& random) {
    const int first = random.chance(500) ? 2 : 3;
    kill(first, random);
    return first == 2 ? 0 : static_cast<int>(random.below(2));
  }
  void kill(int number, SimRandom& random) {
    doom(number, kDeadlyPhases[random.below(kDeadlyPhases.size())], random.below(150'000));
    bury(number);
  }
  /// Waits until all that are here have committed a step together after this call.
  bool go_on() {
    std::map<int, int> before;
    for (const auto& [number, pid] : here_) before[number] = diary_of(number).steps;
    return wait_until([&] {
      return std::all_of(here_.begin(), here_.end(), [&](const auto& process) {
        const Diary& diary = diary_of(process.first);
        return diary.steps > before[process.first] && diary.last_ranks == static_cast<int>(here_.size());
      });
    });
  }
  bool end_well() {
    crew_.stop = true;
    return std::all_of(here_.begin(), here_.end(), [](const auto& process) { return exit_code_of(process.second) == 0; });
  }

 private:
  Diary& diary_of(int number) const { return crew_.processes[static_cast<std::size_t>(number)]; }
  void doom(int number, Phase phase, std::uint64_t delay) {
    diary_of(number).fatal_delay = static_cast<int>(delay);
    diary_of(number).fatal_phase = phase;
  }
  void bury(int number) {
    exit_code_of(here_.at(number));
    here_.erase(number);
  }
  void begin_work(Group group) const { work(std::move(group), diary_of(started_), crew_, way_); }

  Crew& crew_;
  const Way way_;
  const RankProcesses processes_;
  int started_ = 0;
  std::map<int, ::pid_t> here_;
};

/// What all who committed a step say of it. Throws where they do not say the same.
std::vector<CommittedStep> history(const Crew& crew) {
  Chronicle chronicle;
  for (const Diary& diary : crew.processes)
    for (std::uint64_t step = 0; step < kMostSteps; ++step)
      if (const Record& record = diary.records[step]; record.ranks != 0) chronicle.note(step, record.ranks, record.hash);
  return chronicle.steps();
}

void check_end(Town& town, const Crew& crew, const Way& way) {
  CHECK(town.end_well());
  CHECK_FALSE(crew.has_gone_back);
  const std::vector<CommittedStep> steps = history(crew);
  CHECK(steps.size() < kMostSteps);
  const auto differs = first_step_that_differs(steps, 50.0, way.elements);
  CAPTURE(steps.size(), differs.value_or(0));
  CHECK_FALSE(differs);
}

}  // namespace

TEST_CASE("whoever holds rows is killed, in whatever phase of a step, and others join: every step is that of undisturbed FSDP") {
  Campaign campaign("ranks of an elastic group that hold rows are killed in each phase of a step, and others join: all commit a step");
  for (const auto seed : seeds(40)) {
    const Way way = way_of(seed);
    CAPTURE(seed, way.elements, way.shards_parameters);
    SimRandom random(seed);
    SharedByProcesses<Crew> shared;
    Town town(*shared, way, {.ranks = kRanks, .encrypt = seed % 4 > 1});
    REQUIRE(town.go_on());
    for (int event = 0; event < 8; ++event) {
      CAPTURE(event, town.size());
      campaign.begin();
      const auto begin = std::chrono::steady_clock::now();
      if (town.size() < 2 || (!town.is_full() && random.chance(400))) {
        if (town.is_full()) break;
        town.grow();
      } else {
        town.kill_one(random);
      }
      REQUIRE(town.go_on());
      campaign.goes_well_since(begin);
    }
    check_end(town, *shared, way);
  }
}

TEST_CASE("a rank is killed while the rows of another one are spread anew: every step is that of undisturbed FSDP") {
  Campaign campaign(
      "two ranks of an elastic group that hold no rows in common are killed, the second while rows are spread: the next step");
  for (const auto seed : seeds(60)) {
    const Way way = way_of(seed);
    CAPTURE(seed, way.elements, way.shards_parameters);
    SimRandom random(seed);
    SharedByProcesses<Crew> shared;
    Town town(*shared, way, {.ranks = kRanks, .encrypt = seed % 4 > 1});
    REQUIRE(town.go_on());
    campaign.begin();
    town.kill_two(random);
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(town.go_on());
    campaign.goes_well_since(begin);
    check_end(town, *shared, way);
  }
}

TEST_CASE("a rank is killed while second holders are rebuilt, in whatever phase of a step: every step is that of undisturbed FSDP") {
  Campaign campaign("two ranks of an elastic group are killed, the second while second holders are rebuilt: all commit a step");
  for (const auto seed : seeds(40)) {
    const bool shards_parameters = seed % 2 == 0;
    const Way way{shards_parameters ? 60'000U : 100'000U, shards_parameters, 1024};
    CAPTURE(seed, way.shards_parameters);
    SimRandom random(seed);
    SharedByProcesses<Crew> shared;
    Town town(*shared, way, {.ranks = kRanks, .encrypt = seed % 4 > 1});
    REQUIRE(town.go_on());
    const int second = town.kill_one_of_four(random);
    REQUIRE(town.go_on());
    campaign.begin();
    town.kill(second, random);
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(town.go_on());
    campaign.goes_well_since(begin);
    check_end(town, *shared, way);
  }
}
