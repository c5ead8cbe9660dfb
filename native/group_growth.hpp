#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <ringlet/group.hpp>
#include <string>

#include "core/elastic/growth.hpp"
#include "native/growth.hpp"

namespace ringlet::native {

class SharedGroup;

/// How long a rank that has switched to another world waits for an agreement in the one before, which only others may still need.
inline constexpr std::chrono::seconds kPatienceWithOthers{15};

/// How the group of all ranks of an elastic world takes in processes and guests while it runs. The members form the next world beside this
/// one, in the background, and switch to it together. Any thread.
class GroupGrowth {
 public:
  /// Of this group, which outlives it.
  explicit GroupGrowth(SharedGroup& group) : group_(group) {}
  ~GroupGrowth();
  GroupGrowth(const GroupGrowth&) = delete;
  GroupGrowth& operator=(const GroupGrowth&) = delete;

  /// How many processes and guests knock at this rank's door and may be admitted now.
  int waiting() const;
  /// A collective. Begins to form a world of all ranks and the processes that knock anywhere. Returns false on all ranks where there are
  /// none. A growth that has begun before is dropped.
  bool begin(const CallOptions& call);
  /// How the growth stands on this rank.
  GrowthState state();
  /// A collective, the ranks' call of agree(): where the next world is ready on all, returns its group on all, even if a rank is lost
  /// meanwhile, which the next call there then tells. Otherwise returns null on all, and the growth is dropped. No operation of this world
  /// may be pending. After the switch this rank has left this world.
  std::shared_ptr<SharedGroup> finish(const CallOptions& call);
  /// Gives the growth up, if there is one; processes that were to join knock again. This is not a collective: the growth then fails on the
  /// other ranks, too.
  void drop();
  /// What this rank tells the others, the least of which says what grow() does on all: it begins a growth, gives it up, or returns the next
  /// world's group like finish().
  GrowthStanding standing();
  std::shared_ptr<SharedGroup> grow(GrowthStanding least, const CallOptions& call);
  /// All of the above, one thing at each call, so that no call waits for those that join: returns the next world's group once it is ready.
  /// In a world with guests this is no collective, and ends the epoch where somebody knocks.
  std::shared_ptr<SharedGroup> admit(const CallOptions& call);
  /// A collective. Admits the guests with which the group begins, once they knock; see await_first_guests().
  std::shared_ptr<SharedGroup> admit_first_guests(int guests, bool is_late);

 private:
  void refuse_unless_admitting() const;
  void send_guests_away();
  std::shared_ptr<Growth> form_next(const CallOptions& call, const Knocks::Chosen& own, const std::shared_ptr<MeetingStop>& stop);
  std::string coordinator_host();
  WorldConfig config_of_next(const GrowthPlan& plan);
  void send_tickets(const Address& coordinator, const GrowthPlan& plan);
  std::shared_ptr<Growth> current();

  SharedGroup& group_;
  std::mutex mutex_;
  std::shared_ptr<Growth> growth_;
};

}  // namespace ringlet::native
