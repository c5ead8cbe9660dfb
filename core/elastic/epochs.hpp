#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ringlet/group.hpp>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/world.hpp"

namespace ringlet {

/// What came of the end of an epoch.
struct Succession {
  World* world = nullptr;    // of the next epoch; null: the others go on without this rank
  std::vector<int> members;  // by rank in the next epoch: the rank in the one that has ended; empty where this rank left undecided
  std::uint64_t lineage = 0;
  Duration took{};  // from when this rank noticed the end
};

struct EpochsOptions {
  OnSplit on_split = OnSplit::fork;
  std::uint64_t lineage = 0;  // of the first world
  /// For so long the rank that leads waits for another's report, which may only be busy. Who is silent for longer is left out.
  Duration report_timeout = Duration::seconds(2);
  /// Longer, so that nobody takes over from a rank that waits for reports.
  Duration take_over_after = Duration::milliseconds(2500);
  Duration take_over_step = Duration::milliseconds(500);  // for each lower rank
  Duration lonely = Duration::seconds(10);
  /// A process that is ending may close its links before its port, so proof is looked for again and again, each time after twice the time.
  Duration first_proof_interval = Duration::milliseconds(5), last_proof_interval = Duration::milliseconds(500);
  /// Is given the world of each further epoch before anything reaches it.
  std::function<void(World&)> prepare{};
  /// This rank goes on in the next epoch.
  std::function<void(const World& before, const Succession&)> on_succession{};
  /// Finds out whether the process of a rank, by its number in the first epoch, has certainly ended. Silence is no proof.
  std::function<void(int rank, std::function<void(bool has_ended)>)> look_for_proof{};
};

/// The epochs of a world whose ranks come and go. Where a rank is lost, the others agree on who goes on (agreement.hpp), and the links
/// among these become the links of a new world, in which they keep their order. Only native ranks go on: guests join again. A Decision is
/// the first message of an epoch on a link, so nothing of one epoch can reach an operation of another. Belongs to the loop's thread.
class Epochs {
 public:
  using Done = std::function<void(const Succession&)>;

  /// `first` is elastic, and all its ranks have met.
  Epochs(EventLoop& loop, std::unique_ptr<World> first, EpochsOptions options);
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  /// The world of the newest epoch, and its lineage.
  ///@{
  World& world();
  std::uint64_t lineage() const;
  ///@}
  /// `done` runs once, from the loop, when a world of these epochs has failed and it is known what comes after it.
  void when_succeeded(const World& world, Done done);
  /// Closes the newest world like World::close(). None of the others goes on.
  void close(std::function<void()> on_closed);

 private:
  class Stage;

  Stage& stage_of(const World& world);
  Stage& begin(std::unique_ptr<World> world, std::vector<int> origins, std::uint64_t lineage, Stage* before);
  void forget_old();

  EventLoop& loop_;
  const EpochsOptions options_;
  std::vector<std::unique_ptr<Stage>> stages_;  // the newest last
  AliveGuard guard_;
};

/// How many guests of a world that has failed will come again: all of them except one that was lost.
int count_returning_guests(const World& failed);

}  // namespace ringlet
