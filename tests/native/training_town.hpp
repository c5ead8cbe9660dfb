#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sim/sim_random.hpp"
#include "tests/native/elastic_processes.hpp"
#include "tests/shared_by_processes.hpp"

namespace ringlet::test {

/// How the ranks of a town train. The gradients are a tensor of `elements`, perhaps averaged by the ring, and a small one, in buckets of so
/// many bytes.
struct TownTraining {
  std::size_t elements = 50;
  std::int64_t bucket = 1000;
  std::chrono::microseconds computing{};  // for which a step takes at least
};

/// A committed step.
struct Committed {
  std::uint64_t hash = 0;  // of the parameters after it; 56 bits
  int ranks = 0;           // how many took it
};

/// What all processes of a town have committed.
class Journal {
 public:
  static constexpr std::uint64_t kMostSteps = 4'000'000;

  void commit(std::uint64_t number, const Committed& step);
  std::uint64_t size() const { return size_; }
  Committed at(std::uint64_t number) const;
  /// How often a process committed a step that another one had committed with another result, or with other ranks.
  int differences() const { return differences_; }
  /// How many steps nobody committed although a later one was.
  std::uint64_t gaps() const;
  /// How many of the steps that `other` has are others here.
  std::uint64_t differences_from(const Journal& other) const;
  /// Becomes what a process has done that wrote into this journal first and into `later` then.
  void continue_by(const Journal& later);

 private:
  std::array<std::atomic<std::uint64_t>, kMostSteps> steps_;
  std::atomic<std::uint64_t> size_;
  std::atomic<int> differences_;
};

/// Does the same steps with as many ranks each, undisturbed, in a group that is not elastic. Returns the first one with another result.
/// `progress` is told now and then how many are done.
std::optional<std::uint64_t> first_difference(const Journal& journal, const TownTraining& training,
                                              const std::function<void(std::uint64_t)>& progress = {});

/// Processes that train together. Some come, and some go.
class TrainingTown {
 public:
  /// Starts the first ranks.
  TrainingTown(const TownTraining& training, const RankProcesses& processes);
  /// Ends all that are left.
  ~TrainingTown();
  TrainingTown(const TrainingTown&) = delete;
  TrainingTown& operator=(const TrainingTown&) = delete;

  std::size_t size() const { return here_.size(); }
  /// How many processes have been started.
  int started() const { return started_; }
  Journal& journal() { return shared_->journal; }
  /// What those have committed who write apart.
  const Journal& apart() { return shared_->apart; }
  /// Whoever is cut off while its vote is on its way commits a step that the others, who have not got its vote, do again without it. So it
  /// writes into a journal of its own from before then.
  void write_apart(int number, bool does = true) { citizen(number).writes_apart = does; }
  /// Whether one of the first ranks got its state from another one. Those who are left have committed the same steps.
  bool has_parted() { return shared_->has_parted; }
  /// Starts a process that joins, and returns its number, which a process may have had that is gone.
  int grow();
  void kill(int number);
  /// The process kills itself so long after the average of its next step has begun.
  void kill_in_average(int number, std::chrono::nanoseconds delay);
  /// The process stands still, and nobody waits for it, until it wakes.
  void stop(int number);
  void wake(int number);
  /// Whoever is cut off counts for nothing in go_on() until it is back. Its process runs.
  void cut_off(int number) { absent_.insert(here_.extract(number)); }
  void come_back(int number) { here_.insert(absent_.extract(number)); }
  int any(SimRandom& random) const;
  ::pid_t pid(int number) const { return here_.at(number); }
  const std::map<int, ::pid_t>& here() const { return here_; }
  std::uint64_t steps_of(int number) { return citizen(number).steps; }
  int ranks_of(int number) { return citizen(number).ranks; }
  /// Waits until all that are here have committed a step together after this call. False after a minute, and where a process has ended by
  /// itself.
  bool go_on();
  /// Whether all that are here have said that just the process was lost which was killed last, and why.
  bool all_blame_the_last();
  /// Lets all stop after the same step. Returns whether all end well.
  bool end_well();

 private:
  static constexpr int kPlaces = 16;

  struct Citizen {
    std::atomic<std::uint64_t> steps;  // all that it has committed
    std::atomic<int> rank, ranks;      // in the last one
    std::atomic<int> blames;           // the only rank that its last loss cost, by its number then and with that culprit; else -1
    std::atomic<int> fatal_delay;      // nanoseconds; if > 0, see kill_in_average()
    std::atomic<bool> writes_apart;
    std::array<char, 64> door;  // once it has committed a step
  };
  struct Shared {
    Journal journal, apart;
    std::array<Citizen, kPlaces> citizens;
    std::atomic<bool> stop, has_parted;
  };

  Citizen& citizen(int number) { return shared_->citizens.at(static_cast<std::size_t>(number)); }
  void work(Group group, int number, bool is_first);
  void forget(int number);
  bool has_lost_one() const;

  const TownTraining training_;
  const RankProcesses processes_;
  SharedByProcesses<Shared> shared_;
  int started_ = 0;
  int last_lost_rank_ = -1;
  std::map<int, ::pid_t> here_, absent_;
};

}  // namespace ringlet::test
