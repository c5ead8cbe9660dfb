#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/elastic/epochs.hpp"
#include "core/elastic/growth.hpp"
#include "core/rendezvous/knocking.hpp"
#include "core/rendezvous/knocks.hpp"
#include "core/rendezvous/meeting.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/sim_group.hpp"
#include "tests/core/sim_rows.hpp"

// The connections by which a simulated group grows. All that is decided is decided by core/elastic/growth.hpp.
namespace ringlet::test {

/// What the processes of a simulation share.
struct SimTown {
  explicit SimTown(SimWorld& world) : sim(world) {}
  SimWorld& sim;
  bool encrypts = false;
  OnSplit on_split = OnSplit::wait;
  int processes = 0;                                    // that there will ever be
  std::function<EpochsOptions(EpochsOptions)> spoil{};  // what all of them do wrong

  // Where the training's state is sharded.
  bool shards = false;
  int ranks_per_machine = 1;      // processes that follow each other
  std::uint64_t saves_every = 0;  // steps; 0: there are no checkpoints
  std::map<std::uint64_t, SimState> checkpoints;
  /// Is told of the epoch's first process that finds rows lost, with what it held.
  std::function<void(int process, const SimRows& before)> on_rows_lost{};

  std::set<int> refusing;  // processes that have ended, whose machines say so
  /// Each next world, by its coordinator, which has a port of its own.
  struct Met {
    std::vector<int> members{};  // processes by rank
    Address coordinator{};
    std::uint64_t lineage = 0;
    std::uint32_t epoch = 0;
  };
  std::map<std::string, Met> met_at;
  std::uint64_t meetings = 0;
  bool revokes = false;                             // processes end epochs on purpose
  std::map<int, TestAuthenticator> authenticators;  // by process
  // They are perhaps inside calls of their own, or of processes that have ended.
  struct Closing {
    std::unique_ptr<World> world;
    std::unique_ptr<Epochs> epochs;
    std::shared_ptr<bool> is_closed = std::make_shared<bool>(false);
  };
  std::deque<Closing> closing;

  SimNode& node(int process) { return sim.node(static_cast<std::size_t>(process)); }
  Address door(int process) { return {node(process).host(), kSimDoorPort}; }
  TestAuthenticator& authenticator(int process) {
    return authenticators.try_emplace(process, 1'000'000 + static_cast<std::uint64_t>(process), kSimToken, encrypts).first->second;
  }
  /// Says goodbye to the other ranks.
  void leave(std::unique_ptr<Epochs> epochs);
  void close(std::unique_ptr<World> world);
  /// Destroys what has closed. To be called between two events, while nobody joins.
  void forget_old();
  /// How the worlds of these processes go on; the look at a process takes a moment.
  EpochsOptions epochs_options(int process, std::vector<int> members, std::uint64_t lineage);
};

/// The door of a process.
class SimDoor {
 public:
  SimDoor(SimTown& town, int process);
  Knocks& knocks() { return knocks_; }

 private:
  IncomingLinks incoming_;
  Knocks knocks_;
  std::unique_ptr<Listener> listener_;
};

/// A world that is formed beside the present one, or by a process that joins.
class SimGrowth {
 public:
  /// The meeting begins at once. `on_over` runs when it has ended.
  SimGrowth(SimTown& town, int process, const WorldOptions& next, const Address& coordinator, std::uint64_t lineage,
            std::function<void()> on_over);
  ~SimGrowth();
  SimGrowth(const SimGrowth&) = delete;
  SimGrowth& operator=(const SimGrowth&) = delete;

  GrowthState state() const { return progress_.state(); }
  /// Of the coordinator; 0 where it cannot listen.
  std::uint16_t port() const { return port_; }
  const std::vector<int>& members() const { return town_.met_at.at(to_string(coordinator_)).members; }
  /// Makes it fail where it is forming: one that was to join has gone.
  void stop(const Status& why);
  /// The next world, also where it has failed since; null where its ranks have not met.
  std::unique_ptr<Epochs> take() { return std::move(epochs_); }
  World& first() { return *first_; }
  std::string chain() const { return to_string(coordinator_); }
  std::uint64_t lineage() const { return lineage_; }

 private:
  void on_met(const Status& status);

  SimTown& town_;
  const int process_;
  SimNode& node_;
  const std::uint64_t lineage_;
  Address coordinator_;
  std::uint16_t port_ = 0;
  GrowthProgress progress_;
  std::function<void()> on_over_;
  int stop_tries_ = 0;
  const std::shared_ptr<IncomingLinks> incoming_;
  std::unique_ptr<World> world_;
  World* const first_;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<Epochs> epochs_;
  AliveGuard guard_;
};

}  // namespace ringlet::test
