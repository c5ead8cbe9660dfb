#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ringlet/error.hpp>
#include <vector>

#include "core/elastic/epochs.hpp"
#include "core/engine/parts_watch.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/meeting.hpp"
#include "native/door.hpp"
#include "native/given_descriptor.hpp"
#include "native/huge_pages.hpp"
#include "native/loop_driver.hpp"
#include "native/reachability.hpp"
#include "native/reused_buffers.hpp"
#include "native/status/membership.hpp"
#include "native/status/status_socket.hpp"
#include "native/trace/recorder.hpp"
#include "native/votes.hpp"
#include "native/web_door.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/local/memory_shortcut.hpp"
#include "transport/local/peer_memory.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::native {

class SharedGroup;

/// Ends a meeting from another thread. Any thread.
class MeetingStop {
 public:
  /// Makes the meeting fail with this reason, or the one that begins later. Nothing happens where it has ended.
  void stop(const Status& why);

 private:
  friend class NativeWorld;
  void arm(std::function<void(const Status&)> fail);
  void disarm();

  std::mutex mutex_;
  std::optional<Status> why_;
  std::function<void(const Status&)> fail_;  // while the ranks meet
};

/// How to meet the other ranks. init() makes it from its options and the environment.
struct WorldConfig {
  WorldOptions options;
  MeetingOptions meeting;
  std::string token{};                      // empty: none
  std::optional<bool> encrypt{};            // whether links are encrypted; unset: where there is a token
  CipherSet ciphers = preferred_ciphers();  // that encrypted links may have
  bool peer_memory = true;                  // whether ranks of this machine may read each other's memory
  TraceSettings trace{};
  bool status = true;                                  // whether this user's programs may ask for the state (status_socket.hpp)
  std::optional<int> listening_descriptor;             // rank 0: listens at the coordinator's address; the world closes it
  WebConfig web{};                                     // used where there are guests
  DelayHandler on_delay{};                             // unset: warnings go to stderr
  std::function<void(const std::string&)> on_parts{};  // on rank 0, when parts have changed; unset: it goes to stderr
  PartsWatchOptions parts_watch{};                     // where parts follow what links carry
  std::function<bool()> interrupted{};                 // asked by callers that wait
  // How often that ended a wait, in this world and those that follow it.
  std::shared_ptr<std::atomic<int>> interruptions = std::make_shared<std::atomic<int>>(0);
  OnSplit on_split = OnSplit::fork;  // of an elastic world

  std::optional<GivenDescriptor> given_membership{};  // RINGLET_MEMBERSHIP_FD, of which init() makes a duplicate
  std::optional<int> membership_descriptor{};         // of MembershipLog, which closes it

  // Of an elastic world, for those that join it (joining.hpp, growth.hpp).
  ReachSettings reach{};
  std::vector<std::string> hosts{"127.0.0.1"};  // where this rank listens in worlds that follow by growth
  DoorOptions door_options{};
  std::shared_ptr<Door> door{};                 // of the world before; unset: this world opens one
  std::shared_ptr<MembershipLog> membership{};  // of the world before; unset: this world makes one
  std::vector<Address> join{};                  // doors of the group that this process is to join
  std::uint64_t lineage = 0;
  bool joined = false;                  // whether this process has joined the group by this world
  int first_guests = 0;                 // that are waited for before the group begins
  std::shared_ptr<MeetingStop> stop{};  // unset: the meeting ends by itself

  bool encrypts() const { return encrypt.value_or(!token.empty()); }
};

/// The world of a native program: the core's world with a loop, a network, and the rules for threads. It lives as long as any of its groups
/// (shared_group.hpp). Any thread.
class NativeWorld {
 public:
  /// Meets the other ranks. Throws the reason where they do not meet.
  explicit NativeWorld(const WorldConfig& config);
  /// Says goodbye to the other ranks, and waits at most the close timeout.
  ~NativeWorld();
  NativeWorld(const NativeWorld&) = delete;
  NativeWorld& operator=(const NativeWorld&) = delete;

  LoopDriver& driver() { return driver_; }
  /// The first epoch's world, also where it has failed already: until its group is left. May be used only while holding the loop.
  ringlet::World& core() { return *first_; }
  /// Of an elastic world. May be used only while holding the loop.
  Epochs& epochs() { return *epochs_; }
  bool elastic() const { return options_.elastic; }
  const WorldConfig& config() const { return config_; }
  /// Of an elastic world; null otherwise.
  const std::shared_ptr<Door>& door() const { return door_; }
  /// Null where neither `ringlet status` nor a starter is to be told.
  const std::shared_ptr<MembershipLog>& membership() const { return membership_; }
  /// This rank is in the elastic world now.
  void enter(const std::optional<GroupChange>& change);
  /// The members have taken this process in. Where a rank was lost meanwhile, its first epoch is a later one than that in which it has met
  /// them. Until then nobody is told of its groups, and it takes no guests: without a member they are not the group.
  void enter_by_joining(std::uint32_t epoch);
  /// The first epoch that this rank was in.
  std::uint32_t first_epoch() const { return first_epoch_; }
  /// Of the newest epoch. May be used only while holding the loop.
  std::uint64_t lineage() const { return epochs_ ? epochs_->lineage() : config_.lineage; }
  /// WorldOptions::job. May be used only while holding the loop.
  std::uint64_t job() const { return (epochs_ ? epochs_->world() : *core_).options().job; }
  /// Says goodbye to the other ranks without waiting for them. Only the destructor may follow.
  void leave() noexcept;
  bool has_left() const { return leaving_; }
  /// The others have gone on without this rank.
  void be_left_out() { left_out_ = true; }
  bool is_left_out() const { return left_out_; }
  /// Waits until all others have read the goodbye of leave(), at most this long.
  void await_left(Duration timeout) noexcept { driver_.wait(left_, timeout); }
  Votes& votes() { return votes_; }
  ReusedBuffers& reused_buffers() { return reused_buffers_; }
  /// The group of all ranks of a world of these epochs, of which there is one. Throws `InvalidArgument` where it was left already.
  static std::shared_ptr<SharedGroup> group_of(const std::shared_ptr<NativeWorld>& self, ringlet::World& world);

 private:
  class StopSwitch;

  void open(const WorldConfig& config, web::PageBundle page);
  void meet(const WorldConfig& config);
  void begin_epochs(const WorldConfig& config);
  void follow(const ringlet::World& before, const Succession& succession);
  void end_meeting(const Status& why, Instant since);
  void find_closed_ports();
  void prepare(ringlet::World& world);
  void serve_guests(const ringlet::World& world);
  void watch_parts(ringlet::World& world);
  void note_end(const Status& why);
  void expect_guests_after(const ringlet::World& world);
  void open_status(ringlet::World& world);
  void trace_world(const WorldOptions& now, std::uint64_t lineage, std::vector<int> lost) const;
  void close() noexcept;
  void say_goodbye();
  void leak() noexcept;

  const WorldConfig config_;
  const WorldOptions& options_ = config_.options;
  LoopDriver driver_;
  std::unique_ptr<UvNetwork> network_;
  std::unique_ptr<TokenAuthenticator> authenticator_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<Shortcut> shortcut_;
  std::unique_ptr<IncomingLinks> incoming_;
  std::unique_ptr<web::WebFront> web_front_;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<ringlet::World> core_;
  ringlet::World* first_ = nullptr;
  std::unique_ptr<Epochs> epochs_;  // in place of `core_` where the world is elastic and its ranks have met
  std::unique_ptr<PartsWatch> parts_watch_;
  std::unique_ptr<Listeners> listeners_;
  std::vector<Address> addresses_;  // where each rank of the first epoch listens
  std::vector<bool> closed_ports_;  // by rank: whether this one cannot dial it
  TimerId port_timer_ = 0;
  TimerId stop_timer_ = 0;
  std::unique_ptr<StatusSocket> status_;
  std::shared_ptr<Door> door_;
  std::shared_ptr<MembershipLog> membership_;
  std::uint64_t world_id_ = 0;
  std::atomic<bool> leaving_{false}, left_out_{false};
  std::atomic<std::uint32_t> first_epoch_;
  bool is_in_;  // false for a process that joins, until it is a member
  DoneFlag left_;
  Votes votes_;
  ReusedBuffers reused_buffers_{gather_into_huge_pages};
  std::mutex groups_mutex_;
  std::map<std::uint32_t, std::weak_ptr<SharedGroup>> groups_;  // of all ranks, by epoch
};

}  // namespace ringlet::native
