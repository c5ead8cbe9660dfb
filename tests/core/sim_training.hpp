#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/sim_group.hpp"
#include "tests/core/sim_trainer.hpp"

namespace ringlet::test {

/// What breaks or comes, after some event.
struct TrainingFault {
  enum class Kind : std::uint8_t {
    process_ends,      // and its system closes its links
    process_is_reset,  // its system resets its links
    power_fails,
    stands_still,  // until heal()
    link_is_cut,   // until heal()
    link_is_deaf,  // nothing comes from `rank` to `other` for 20 s
    link_is_reset,
    network_parts,  // into the processes whose bits are set in `rank`, and the others, until heal()
    is_restarted,   // it ends, and a new process joins
    joins,          // a new process
    guest_comes,    // which comes again whenever its world has ended
    kCount,
  };
  Kind kind = Kind::process_ends;
  int rank = 0, other = 0;  // processes; those that come have the next numbers
  std::uint64_t event = 0;
};

struct TrainingSetup {
  GroupSetup group{};
  OnSplit on_split = OnSplit::wait;
  bool rejoins = false;  // those that were left out
  int joiners = 0;       // for which there are machines
  bool shards = false;   // the state is sharded, with two holders of each row
  int ranks_per_machine = 1;
  std::uint64_t saves_every = 0;  // steps of a training whose state is sharded; 0: there are no checkpoints
};

/// All processes of a training, and what must hold for them.
class SimTraining {
 public:
  explicit SimTraining(const TrainingSetup& setup, BrokenTrainer broken = BrokenTrainer::none);

  SimWorld& sim() { return group_.sim(); }
  SimTrainer& trainer(int process) { return *trainers_[static_cast<std::size_t>(process)]; }
  /// The fault happens at event number `first` + fault.event of the world.
  void break_at(std::uint64_t first, const TrainingFault& fault);
  /// Processes that stood still wake, and networks are whole again.
  void heal();
  /// Those that have begun and have not ended.
  std::vector<int> living() const;
  /// The sizes, from the largest, of the groups that are complete and whose ranks have all committed two steps in them.
  std::vector<int> groups_that_go_on();
  /// Runs until those are of these sizes. Returns false after `limit`.
  bool run_until_groups_go_on(const std::vector<int>& sizes, Duration limit);

  /// Forgets what only tests ask for, and destroys what has closed. check() has no answer afterwards.
  void forget_history();
  /// Says which invariant is broken, or "". Processes that ended bind nobody.
  std::string check();

 private:
  void end_when(int process, StopKind kind, std::function<bool()> condition);
  void join_when(std::function<bool()> condition, bool as_guest = false);
  std::string check_alone(int process);
  std::string check_together();
  std::string check_states();
  /// A step as all have seen that took it, also those that have ended since.
  struct StepOfRows {
    SimAverage average{};
    std::map<int, const SimRows::Copies*> copies{};  // by process
  };
  using StepsOfRows = std::map<std::pair<std::uint64_t, SimEpoch>, StepOfRows>;  // by number and epoch
  StepsOfRows steps_of_rows() const;
  std::string check_rows();
  std::string check_holders(const SimEpoch& epoch, const StepOfRows& step, bool are_rebuilt);
  void on_rows_lost(int process, const SimRows& before);
  bool somebody_had(const SimTrainer::Taken& taken) const;

  const TrainingSetup setup_;
  const BrokenTrainer broken_;
  SimGroup group_;
  SimTown town_;
  std::set<int> ended_;
  std::set<SimEpoch> lost_rows_in_;
  std::string wrong_;
  std::vector<std::unique_ptr<SimTrainer>> trainers_;  // null: has not begun
};

}  // namespace ringlet::test
