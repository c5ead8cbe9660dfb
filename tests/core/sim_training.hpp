#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/elastic/epochs.hpp"
#include "native/votes.hpp"
#include "tests/core/sim_group.hpp"

namespace ringlet::test {

/// What a trainer does wrong on purpose, to show that the checks notice it.
enum class BrokenTrainer : std::uint8_t {
  none,
  applies_without_vote,
  believes_own_vote,  // where a rank was lost in the vote
  ignores_results_of_others,
  keeps_old_shares,  // of the batch, after a loss
  draws_new_batch,   // when it does a step again
  weighs_evenly,     // whatever the number of samples
  skips_lost_step,
  undoes_step,         // after a loss
  goes_on_alone,       // where the others have gone on without it
  hears_too_early,     // takes what belongs to the epoch before
  takes_buffers_back,  // while an operation uses them
  silence_is_proof,
  forks,  // against the policy
  looks_for_no_proof,
  leads_impatiently,  // goes on without those whose reports are under way
};

/// A rank that trains in simulated time as ElasticTrainer does: it averages, votes, applies, and goes on in the next epoch after a loss.
class SimTrainer {
 public:
  using Epoch = std::pair<std::uint64_t, std::uint32_t>;  // lineage and number

  static constexpr std::uint64_t kBatch = 12;

  struct Applied {
    std::uint64_t step = 0;
    std::int64_t sum = 0;  // over the batch
    std::int64_t samples = 0;
  };

  SimTrainer(SimGroup& group, int rank, EpochsOptions options, BrokenTrainer broken);

  /// All that it has ever applied.
  const std::vector<Applied>& log() const { return log_; }
  /// The members of each epoch by their first ranks, and the number of steps with which it began.
  const std::map<Epoch, std::vector<int>>& members() const { return members_of_; }
  const std::map<Epoch, std::uint64_t>& begins() const { return begins_; }
  const Epoch& epoch() const { return epoch_; }
  /// Whether it has committed so many steps in its newest epoch.
  bool goes_on(std::uint64_t steps) const;
  /// The epoch of which it has learned that the others have begun it without it.
  const std::optional<Epoch>& left_out_of() const { return left_out_of_; }
  /// What it has seen that must not be, or "".
  std::string wrong() const;

 private:
  void begin_step();
  void vote();
  void apply();
  void take_step();
  void on_failure(const Status& status);
  void go_on(const Succession& succession);
  void settle_votes();
  void resume_after_loss();
  void begin_epoch();
  void start(Result<CollectiveTask> task, void (SimTrainer::*next)());
  void take_buffer_back();
  Duration pause() const;
  std::vector<int>& own_members() { return members_of_[epoch_]; }

  EventLoop& loop_;
  const int origin_;
  const BrokenTrainer broken_;
  Epochs epochs_;
  World* world_ = nullptr;
  std::deque<World*> held_;
  native::Votes votes_;
  bool is_voting_ = false;

  Epoch epoch_{};
  std::map<Epoch, std::vector<int>> members_of_;
  std::map<Epoch, std::uint64_t> begins_;
  std::uint64_t step_ = 0;
  std::vector<Applied> log_;
  std::vector<std::int64_t> gradient_, sum_;
  std::deque<std::vector<std::int64_t>> taken_back_;  // nothing may write there any more
  std::int32_t answer_ = 0;
  std::vector<native::Votes::Told> told_;
  native::Votes::Told own_told_{};
  int share_rank_ = 0, share_size_ = 0, pending_ = 0;
  bool waits_ = false;
  std::optional<Epoch> left_out_of_;
  std::string wrong_;
  AliveGuard guard_;
};

/// What breaks, after some event.
struct TrainingFault {
  enum class Kind : std::uint8_t {
    process_ends,      // and its system closes its links
    process_is_reset,  // its system resets its links
    power_fails,
    stands_still,  // until heal()
    link_is_cut,   // until heal()
    link_is_deaf,  // nothing comes from `rank` to `other` for 20 s
    link_is_reset,
    network_parts,  // into the ranks whose bits are set in `rank`, and the others, until heal()
  };
  Kind kind = Kind::process_ends;
  int rank = 0, other = 0;
  std::uint64_t event = 0;
};

/// The sum over a step's batch that every trainer must apply.
std::int64_t expected_sum(std::uint64_t step);

/// All ranks of a training, and what must hold for them.
class SimTraining {
 public:
  SimTraining(const GroupSetup& setup, OnSplit on_split, BrokenTrainer broken = BrokenTrainer::none);

  SimWorld& sim() { return group_.sim(); }
  SimTrainer& trainer(int rank) { return trainers_[static_cast<std::size_t>(rank)]; }
  /// The fault happens at event number `first` + fault.event of the world.
  void break_at(std::uint64_t first, const TrainingFault& fault);
  /// Ranks that stood still wake, and networks are whole again.
  void heal();
  /// Those whose processes have not ended.
  std::vector<int> living() const;
  /// The sizes, from the largest, of the groups that are complete and whose ranks have all committed two steps in them.
  std::vector<int> groups_that_go_on();
  /// Runs until those are of these sizes. Returns false after `limit`.
  bool run_until_groups_go_on(const std::vector<int>& sizes, Duration limit);

  /// Says which invariant is broken, or "". Ranks that ended bind nobody.
  std::string check();

 private:
  void end_when(int rank, StopKind kind, std::function<bool()> condition);
  std::string check_alone(int rank);
  std::string check_together();

  SimGroup group_;
  const OnSplit on_split_;
  std::set<int> ended_, refusing_;  // processes that have ended, and those of them whose machines say so
  std::deque<SimTrainer> trainers_;
};

}  // namespace ringlet::test
