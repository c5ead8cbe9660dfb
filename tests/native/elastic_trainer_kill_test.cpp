// Processes that train together are killed. What is left is compared, step for step and bit for bit, with a run that nobody disturbs.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <ringlet/ringlet.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/elastic_processes.hpp"
#include "tests/native/expect.hpp"
#include "tests/shared_by_processes.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr int kRanks = 4;       // at the beginning
constexpr int kProcesses = 10;  // with those that join
constexpr std::uint64_t kMostSteps = 100'000;
constexpr std::uint64_t kBatch = 22;  // divides evenly by two ranks alone

/// What a rank has after a step.
struct Record {
  std::atomic<std::uint64_t> hash;
  std::atomic<int> ranks;  // how many took the step; 0: this rank did not commit it
};
struct Diary {
  std::array<Record, kMostSteps> records;
  std::atomic<int> steps, last_ranks;  // all that this rank has committed, and how many took the last one
  std::array<char, 64> door;           // once it has committed a step
  std::atomic<int> fatal_delay;        // if > 0: this rank kills itself so many nanoseconds after the average of its next step has begun
};
struct Crew {
  std::array<Diary, kProcesses> ranks;
  std::atomic<bool> stop, has_parted;
};

/// How the gradients travel: a tensor of `elements`, perhaps by the ring, and a small one, in buckets of so many bytes.
struct Way {
  std::size_t elements;
  std::int64_t bucket;
};
Way way_of(std::uint64_t seed) { return {seed % 2 == 0 ? 100'000U : 50U, seed % 4 < 2 ? 1000 : 1 << 20}; }

/// A state whose every bit depends on all gradients of all steps.
struct Model {
  explicit Model(const Way& way) : large(way.elements, 0.5f), large_gradient(way.elements) {}
  /// They depend on the parameters, as real ones do, and each addition rounds.
  void compute_gradients(const Step& step, std::uint64_t number) {
    for (std::vector<float>* gradient : {&small_gradient, &large_gradient}) {
      const std::vector<float>& parameters = gradient == &small_gradient ? small : large;
      for (std::size_t i = 0; i < gradient->size(); ++i) (*gradient)[i] = 0.01f * parameters[i];
      for (std::uint64_t sample = step.first(); sample < step.first() + step.count(); ++sample) {
        const auto spread = static_cast<float>((number * 977 + sample * 131) % 1009) / 7;
        for (std::size_t i = sample % 16; i < gradient->size(); i += 16) (*gradient)[i] += spread / static_cast<float>(step.count());
      }
    }
  }
  void apply() {
    for (std::size_t i = 0; i < small.size(); ++i) small[i] -= 0.1f * small_gradient[i];
    for (std::size_t i = 0; i < large.size(); ++i) large[i] -= 0.1f * large_gradient[i];
  }
  /// FNV-1a over 64 bits at a time.
  std::uint64_t hash() const {
    std::uint64_t hash = 14'695'981'039'346'656'037U;
    for (const std::vector<float>* parameters : {&small, &large})
      for (std::size_t i = 0; i + 1 < parameters->size(); i += 2) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, parameters->data() + i, sizeof bits);
        hash = (hash ^ bits) * 1'099'511'628'211U;
      }
    return hash;
  }
  Checkpoint checkpoint() {
    Checkpoint state;
    state.add("model", Tree{{"small", small}, {"large", large}});
    return state;
  }

  Tree gradients(std::vector<float>& stop) { return {{"large", large_gradient}, {"small", small_gradient}, {"stop", stop}}; }

  std::vector<float> small = std::vector<float>(50, 1.0f), large;
  std::vector<float> small_gradient = std::vector<float>(50), large_gradient;
};

struct Stopped {};

void die_after(std::chrono::nanoseconds delay) {
  std::thread([end = std::chrono::steady_clock::now() + delay] {
    while (std::chrono::steady_clock::now() < end) {
    }
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

/// Trains until it is told to stop, on all ranks after the same step.
void work(Group group, int origin, Crew& crew, const Way& way) {
  Diary& diary = crew.ranks[static_cast<std::size_t>(origin)];
  Model model(way);
  std::vector<float> stop(1);
  ElasticTrainerOptions options;
  options.average.all_reduce_size = way.bucket;
  // Those who are left have committed the same steps, so only who joins needs the state of another.
  options.on_state = [&](const Checkpoint&, std::uint64_t) {
    if (origin < kRanks) crew.has_parted = true;
  };
  ElasticTrainer trainer(std::move(group), model.checkpoint(), options);
  group = Group();
  try {
    trainer.run({.steps = kMostSteps, .batch = kBatch}, [&](Step& step) {
      model.compute_gradients(step, step.number());
      stop[0] = crew.stop ? 1 : 0;
      if (diary.fatal_delay > 0) die_after(std::chrono::nanoseconds(diary.fatal_delay));
      step.average(model.gradients(stop));
      step.commit([&] {
        model.apply();
        Record& record = diary.records[step.number()];
        record.hash = model.hash();
        record.ranks = step.world().size();
        diary.last_ranks = step.world().size();
        if (diary.steps == 0) step.world().door().copy(diary.door.data(), diary.door.size() - 1);
        ++diary.steps;
      });
      if (stop[0] > 0) throw Stopped();
    });
  } catch (const Stopped&) {
  }
}

/// What all who committed a step say of it. Fails where they do not say the same.
struct Committed {
  std::uint64_t hash = 0;
  int ranks = 0;
};
std::vector<Committed> history(const Crew& crew) {
  std::vector<Committed> steps;
  for (std::uint64_t number = 0; number < kMostSteps; ++number) {
    Committed committed;
    for (const Diary& diary : crew.ranks) {
      const Record& record = diary.records[number];
      if (record.ranks == 0) continue;
      if (committed.ranks != 0 && (committed.hash != record.hash || committed.ranks != record.ranks))
        throw std::runtime_error("step " + std::to_string(number) + " differs between the ranks");
      committed = {record.hash, record.ranks};
    }
    if (committed.ranks == 0) break;
    steps.push_back(committed);
  }
  return steps;
}

/// Does the same steps with as many ranks each, undisturbed, in a group that is not elastic. Returns the first step that differs.
std::optional<std::uint64_t> first_difference(const std::vector<Committed>& steps, const Way& way) {
  Model state(way);
  std::mutex mutex;
  std::optional<std::uint64_t> differs;
  for (std::uint64_t begin = 0; begin < steps.size();) {
    const int ranks = steps[begin].ranks;
    std::uint64_t end = begin;
    while (end < steps.size() && steps[end].ranks == ranks) ++end;
    const Model before = state;
    run_ranks(ranks, [&](Group& group) {
      Model model = before;
      ElasticTrainerOptions options;
      options.average.all_reduce_size = way.bucket;
      ElasticTrainer trainer(group, model.checkpoint(), options);
      std::vector<float> stop(1);
      trainer.run({.steps = end - begin, .batch = kBatch}, [&](Step& step) {
        const std::uint64_t number = begin + step.number();
        model.compute_gradients(step, number);
        step.average(model.gradients(stop));
        step.commit([&] { model.apply(); });
        const std::lock_guard lock(mutex);
        if (model.hash() != steps[number].hash && (!differs || number < *differs)) differs = number;
      });
      const std::lock_guard lock(mutex);
      state = model;
    });
    if (differs) return differs;
    begin = end;
  }
  return differs;
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
  bool is_full() const { return started_ == kProcesses; }
  /// Starts a process that joins, and returns its number.
  int grow() {
    std::string doors;
    for (const auto& [number, pid] : here_) doors += (doors.empty() ? "" : ",") + std::string(diary_of(number).door.data());
    here_.emplace(started_, start_newcomer(doors, processes_, [this](Group group) { begin_work(std::move(group)); }));
    return started_++;
  }
  void kill(int number) {
    ::kill(here_.at(number), SIGKILL);
    exit_code_of(here_.at(number));
    here_.erase(number);
  }
  /// The process kills itself so long after the average of its next step has begun.
  void kill_in_average(int number, int nanoseconds) {
    diary_of(number).fatal_delay = nanoseconds;
    exit_code_of(here_.at(number));
    here_.erase(number);
  }
  /// The process stands still until the others have gone on without it, and then goes on.
  bool stop_for_a_while(int number) {
    const auto stopped = here_.extract(number);
    ::kill(stopped.mapped(), SIGSTOP);
    const bool others_went_on = go_on();
    ::kill(stopped.mapped(), SIGCONT);
    here_.emplace(number, stopped.mapped());
    return others_went_on;
  }
  int any(SimRandom& random) const { return std::next(here_.begin(), static_cast<std::ptrdiff_t>(random.below(here_.size())))->first; }
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
  Diary& diary_of(int number) const { return crew_.ranks[static_cast<std::size_t>(number)]; }
  void begin_work(Group group) const { work(std::move(group), started_, crew_, way_); }

  Crew& crew_;
  const Way way_;
  const RankProcesses processes_;
  int started_ = 0;
  std::map<int, ::pid_t> here_;
};

}  // namespace

TEST_CASE("processes are killed and others join, at random: every step is that of an undisturbed run") {
  Campaign campaign("ranks that train are killed, and others join: all commit a step");
  for (const auto seed : seeds(25)) {
    CAPTURE(seed);
    SimRandom random(seed);
    SharedByProcesses<Crew> shared;
    Town town(*shared, way_of(seed), {.ranks = kRanks, .encrypt = seed % 2 == 1});
    REQUIRE(town.go_on());
    for (int event = 0; event < 8; ++event) {
      CAPTURE(event, town.size());
      campaign.begin();
      const auto begin = std::chrono::steady_clock::now();
      const bool comes = town.size() < 2 || (!town.is_full() && random.chance(600));
      if (comes) town.grow();
      // Half of those that come do so while another one goes, which may be the same.
      if (!comes || (town.size() > 2 && random.chance(500))) {
        pass(std::chrono::microseconds(random.below(comes ? 40'000 : 5'000)));
        town.kill(town.any(random));
      }
      REQUIRE(town.go_on());
      campaign.goes_well_since(begin);
      if (town.is_full() && town.size() == 1) break;
    }
    CHECK(town.end_well());
    CHECK_FALSE(shared->has_parted);
    const std::vector<Committed> steps = history(*shared);
    const auto differs = first_difference(steps, way_of(seed));
    CAPTURE(steps.size(), differs.value_or(0));
    CHECK_FALSE(differs);
  }
}

TEST_CASE("a rank that stood still is left out, and comes back by itself") {
  Campaign campaign("a rank that trains is stopped, with a limit of 0.5 s, and goes on: all commit a step");
  for (const auto seed : seeds(3)) {
    CAPTURE(seed);
    SimRandom random(seed);
    SharedByProcesses<Crew> shared;
    Town town(*shared, way_of(seed), {.ranks = kRanks, .heartbeat_timeout = std::chrono::milliseconds(500)});
    REQUIRE(town.go_on());
    for (int round = 0; round < 2; ++round) {
      campaign.begin();
      REQUIRE(town.stop_for_a_while(town.any(random)));
      const auto begin = std::chrono::steady_clock::now();
      REQUIRE(town.go_on());
      campaign.goes_well_since(begin);
    }
    CHECK(town.end_well());
    const std::vector<Committed> steps = history(*shared);
    CHECK_FALSE(first_difference(steps, way_of(seed)));
  }
}

TEST_CASE("whichever rank is killed in training, and whenever, every step is that of an undisturbed run") {
  Campaign campaign("ranks that train are killed, one after the other: the next step is committed");
  for (const auto seed : seeds(67)) {
    CAPTURE(seed);
    SimRandom random(seed);
    SharedByProcesses<Crew> shared;
    Town town(*shared, way_of(seed), {.ranks = kRanks, .encrypt = seed % 2 == 1});
    REQUIRE(town.go_on());
    while (town.size() > 1) {
      CAPTURE(town.size());
      campaign.begin();
      pass(std::chrono::microseconds(random.below(20'000)));
      // Every other one dies within a collective, when some of the others may have its part and some not.
      if (random.chance(500))
        town.kill(town.any(random));
      else
        town.kill_in_average(town.any(random), 1 + static_cast<int>(random.below(200'000)));
      const auto begin = std::chrono::steady_clock::now();
      REQUIRE(town.go_on());
      campaign.goes_well_since(begin);
    }
    CHECK(town.end_well());
    CHECK_FALSE(shared->has_parted);
    const std::vector<Committed> steps = history(*shared);
    CHECK(steps.size() < kMostSteps);
    const auto differs = first_difference(steps, way_of(seed));
    CAPTURE(steps.size(), differs.value_or(0));
    CHECK_FALSE(differs);
  }
}
