#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/error.hpp>
#include <span>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "core/base/time.hpp"
#include "core/engine/options.hpp"
#include "core/wire/control.hpp"

// How a group takes in ranks while it runs: what each rank decides, and when. Nothing here has a clock, a thread or a socket.
namespace ringlet {

/// How a rank's part in forming the next world stands.
enum class GrowthState : std::uint8_t {
  none,     // nothing has begun
  forming,  // the ranks of the next world are meeting
  ready,    // they have met, as far as this rank knows
  failed,   // they have not, or have lost one of them since
};

/// How a rank's part stands, from when it has begun until it is dropped. A failure is final, whatever is heard later.
class GrowthProgress {
 public:
  explicit GrowthProgress(GrowthState state = GrowthState::forming) : state_(state) {}
  GrowthState state() const { return state_; }
  void met();
  void fail() { state_ = GrowthState::failed; }

 private:
  GrowthState state_;
};

/// What a rank tells the others of its part and of its door. The least of all ranks' counts, so that one who has failed ends it for all,
/// and none switches before all are ready.
enum class GrowthStanding : std::int32_t { failed, forming, ready, knocked, idle };
GrowthStanding standing_of(GrowthState state, bool somebody_knocks);

/// What all ranks do next, all of them the same.
enum class GrowthStep : std::uint8_t {
  none,
  begin,    // forming the next world
  enter,    // it, if all agree() that it is ready
  give_up,  // the part that has begun; those who were to join knock again
};
GrowthStep step_of(GrowthStanding least);

/// How many of those that knock at its door a rank of a group of this size may choose, where no group may be larger than `largest_size`.
int most_to_choose(int size, int largest_size);
/// Those that a rank has chosen.
struct GrowthShare {
  std::int32_t processes = 0, guests = 0;
};
/// Who will be in the next world: the present ranks as they are, then the processes by the ranks at whose doors they knock, then guests.
struct GrowthPlan {
  int processes = 0, guests = 0;
  int first_process = 0;  // the rank of the first one at this rank's door
};
/// What follows from what all ranks have chosen; nothing where nobody knocks. Fails with the rank that has chosen more than
/// most_to_choose() says.
Result<std::optional<GrowthPlan>> plan_growth(std::span<const GrowthShare> chosen, int own_rank, int largest_size);
/// A member's options in the next world.
WorldOptions options_of_next(const WorldOptions& present, const GrowthPlan& plan);

/// What the processes at this rank's door are told: `host` is empty where they reach rank 0 as they have reached the door.
wire::Ticket ticket_to(const WorldOptions& next, const GrowthPlan& plan, const Address& coordinator, std::uint64_t lineage, Duration wait);
/// Makes a ticket's options out of a process' own. Fails where this version does not know what the group does.
Status use_ticket(const wire::Ticket& ticket, int largest_size, WorldOptions& options);

/// Whether a process that has joined is in the group although the epoch in which it met the members has ended before all were in: where
/// one of these goes on with it. Otherwise the members may not have switched, so it leaves, and knocks again. Were it to leave in any
/// case, those who are left might be too few to go on. `goes_on` are the ranks in that epoch of those in the next one.
bool is_among_members(std::span<const int> goes_on, const wire::Ticket& ticket);

/// What a member that has switched does until it may leave the world before. A rank that lost another one in its agree() about the switch
/// learns the answer from the others, in the world that follows the one before, until all are in the new one.
class WorldSwitch {
 public:
  enum class Step : std::uint8_t {
    wait,
    help,        // follow the world before to its next epoch, and settle the votes there
    end_before,  // revoke the world before, so that all who may still be in agree() there come and learn the answer
    leave,       // the world before
  };
  /// Whether all ranks of the new world are in it, as its first operation tells.
  enum class Entry : std::uint8_t { awaited, all_are_in, has_failed };

  /// `elastic` is the world before.
  explicit WorldSwitch(bool elastic) : helps_(elastic) {}
  /// `failed` says whether the newest world that follows the one before has failed. After `help` comes helped() or cannot_help().
  Step next(Entry entry, bool failed);
  void helped() { has_helped_ = true; }
  /// The others of the world before go on without this rank.
  void cannot_help() { helps_ = false; }

 private:
  bool helps_, has_helped_ = false, has_ended_ = false;
};

}  // namespace ringlet
