#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/requests.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/guest_entry.hpp"
#include "core/rendezvous/meeting.hpp"
#include "sim/sim_network.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/test_authenticator.hpp"

namespace ringlet::test {

/// The token of all ranks, unless a test sets another one.
inline const std::string kSimToken = "a token that all have";
/// Of the door of each rank of an elastic world.
inline constexpr std::uint16_t kSimDoorPort = 6000;

/// The result of an operation.
struct Outcome {
  int completions = 0;
  Status status;
  Instant started{};
  Instant ended{};

  bool done() const { return completions > 0; }
};

struct GroupSetup {
  int size = 2;
  std::uint64_t seed = 0;
  bool with_roster = false;
  bool encrypts = false;
  PathOptions paths{};
  WorldOptions world{};
  std::vector<int> machines{};  // by native rank, a number for its machine; empty: each has its own
  Duration connect_timeout = Duration::seconds(60);
  Duration entry_timeout = Duration::seconds(10);  // of guests
};

/// Worlds of `size` ranks over a simulated network, one node each. As soon as a guest has a seat, its rank is on the guest's own node.
class SimGroup {
 public:
  explicit SimGroup(const GroupSetup& setup);
  ~SimGroup();

  int size() const { return setup_.size; }
  SimWorld& sim() { return sim_; }
  SimNode& node(int rank) { return *ranks_[static_cast<std::size_t>(rank)].node; }
  bool has_world(int rank) const { return ranks_[static_cast<std::size_t>(rank)].world != nullptr; }
  World& world(int rank) { return *ranks_[static_cast<std::size_t>(rank)].world; }
  const WorldOptions& options(int rank) { return world(rank).options(); }
  const std::optional<Status>& met(int rank) const { return ranks_[static_cast<std::size_t>(rank)].met; }
  Address listening_address(int rank) { return {node(rank).host(), static_cast<std::uint16_t>(5000 + beside(rank))}; }
  Address door(int rank) { return {node(rank).host(), static_cast<std::uint16_t>(kSimDoorPort + beside(rank))}; }

  /// Returns the options with which a rank is started. They are changed before start_meeting().
  MeetingOptions& meeting_options(int rank) { return ranks_[static_cast<std::size_t>(rank)].meeting_options; }
  void make_world(int rank, const WorldOptions& options);
  void set_token(int rank, const std::string& token);
  TestAuthenticator& authenticator(int rank) { return *ranks_[static_cast<std::size_t>(rank)].authenticator; }
  IncomingLinks& incoming(int rank) { return *ranks_[static_cast<std::size_t>(rank)].incoming; }
  void start_meeting(int rank);
  /// Starts guest number `number`, from 0. The rank that it gets is known later.
  void start_guest(int number);
  /// Returns why a guest has not got a seat.
  const std::optional<Status>& refused(int number) const { return guests_[static_cast<std::size_t>(number)].refused; }
  SimNode& guest_node(int number) { return sim_.node(static_cast<std::size_t>(setup_.size - setup_.world.guests + number)); }
  /// Returns the rank of the guest's seat, or -1.
  int guest_rank(int number) const { return guests_[static_cast<std::size_t>(number)].rank; }
  /// Returns how many ranks were there when the guest was last told.
  int guest_present(int number) const { return guests_[static_cast<std::size_t>(number)].present; }
  void leave_guest(int number);
  /// Gives away the world of a rank that has met the others.
  std::unique_ptr<World> take_world(int rank);
  /// Ends the rank's process: its meeting and its world are destroyed.
  void destroy(int rank);
  /// Starts all meetings at once and requires that all succeed.
  void meet();

  Outcome& start(int rank, std::uint16_t stream, Result<CollectiveTask> task) {
    return start_in(world(rank).group(), rank, stream, std::move(task));
  }
  Outcome& send(int rank, std::uint16_t stream, Result<MessageTask> task) {
    return send_in(world(rank).group(), rank, stream, std::move(task));
  }
  Outcome& receive(int rank, std::uint16_t stream, Result<MessageTask> task) {
    return receive_in(world(rank).group(), rank, stream, std::move(task));
  }
  /// Starts a collective in any group of the rank; `rank` is its number in the world.
  Outcome& start_in(GroupEngine& group, int rank, std::uint16_t stream, Result<CollectiveTask> task);
  Outcome& send_in(GroupEngine& group, int rank, std::uint16_t stream, Result<MessageTask> task);
  Outcome& receive_in(GroupEngine& group, int rank, std::uint16_t stream, Result<MessageTask> task);
  /// Starts a split; `made` is set when it completes.
  Outcome& start_split(GroupEngine& parent, int rank, std::uint16_t stream, int color, int key, GroupEngine*& made,
                       Duration timeout = Duration::seconds(600));
  /// Starts the creation of a group of these ranks; `made` is set when it completes.
  Outcome& start_create(GroupEngine& parent, int rank, const std::vector<int>& ranks, int tag, GroupEngine*& made,
                        Duration timeout = Duration::seconds(600));
  /// Splits a group on all its ranks and requires that it succeeds. Everything is by rank in the world; null: the rank is not in the group.
  /// Without `keys`, each key is -1.
  std::vector<GroupEngine*> split(const std::vector<GroupEngine*>& parents, const std::vector<int>& colors,
                                  const std::vector<int>& keys = {});
  /// Returns the group of all ranks, by rank.
  std::vector<GroupEngine*> groups();
  /// Runs until every operation started so far has completed. Returns false where virtual time ran out.
  bool run_until_done(Duration limit = Duration::seconds(3000));
  /// Closes every world, and requires that this ends and that no rank has seen a failure.
  void close_cleanly();
  void close(int rank);
  bool closed(int rank) const { return ranks_[static_cast<std::size_t>(rank)].closed; }

 private:
  struct Rank {
    SimNode* node = nullptr;
    std::unique_ptr<World> world;
    std::unique_ptr<TestAuthenticator> authenticator;
    std::unique_ptr<IncomingLinks> incoming;
    std::unique_ptr<Meeting> meeting;
    MeetingOptions meeting_options;
    std::optional<Status> met;
    bool closed = false;
  };
  struct Guest {
    std::unique_ptr<TestAuthenticator> authenticator;
    std::unique_ptr<GuestEntry> entry;
    std::optional<Status> refused;
    int rank = -1;
    int present = 0;
  };
  /// The number of lower ranks on the rank's machine.
  int beside(int rank) const;
  void start(Meeting& meeting, Rank& entry);
  void on_seat(int number, GuestEntry::Entry entry);
  Outcome& new_outcome(int rank);
  Completion completion_of(int rank, Outcome& outcome);

  GroupSetup setup_;
  SimWorld sim_;
  std::vector<Guest> guests_;
  std::vector<Rank> ranks_;
  std::deque<Outcome> outcomes_;
  std::size_t pending_ = 0;
};

/// Returns a group's members in their order, by their ranks in the world.
std::vector<int> world_ranks(const GroupEngine& group);

/// Returns the options of a network with small buffers and many splits, which are drawn from the seed.
PathOptions rough_paths();

/// A group of two to five ranks with any network, a third of them encrypted.
GroupSetup random_setup(SimRandom& random, std::uint64_t seed);

}  // namespace ringlet::test
