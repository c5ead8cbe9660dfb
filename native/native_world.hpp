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
#include "native/huge_pages.hpp"
#include "native/loop_driver.hpp"
#include "native/reused_buffers.hpp"
#include "native/status/status_socket.hpp"
#include "native/trace/recorder.hpp"
#include "native/votes.hpp"
#include "native/world_config.hpp"
#include "native/world_start.hpp"
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

/// The world of a native program: the core's world with a loop, a network, and the rules for threads. It lives as long as any of its groups
/// (shared_group.hpp). Any thread.
class NativeWorld {
 public:
  /// Meets the other ranks, at the socket that is given, if any. Throws the reason where they do not meet.
  explicit NativeWorld(const WorldConfig& config, const WorldStart& start, MeetingSockets sockets = {});
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
  const WorldStart& start() const { return start_; }
  /// Of an elastic world; null otherwise.
  Door* door() const { return start_.door.get(); }
  /// This rank is in the elastic world now.
  void enter(const std::optional<GroupChange>& change);
  /// The members have taken this process in. Where a rank was lost meanwhile, its first epoch is a later one than that in which it has met
  /// them. Until then nobody is told of its groups, and it takes no guests: without a member they are not the group.
  void enter_by_joining(std::uint32_t epoch);
  /// The first epoch that this rank was in.
  std::uint32_t first_epoch() const { return first_epoch_; }
  /// Of the newest epoch. May be used only while holding the loop.
  std::uint64_t lineage() const { return epochs_ ? epochs_->lineage() : start_.lineage; }
  /// WorldOptions::job. May be used only while holding the loop.
  std::uint64_t job() const { return (epochs_ ? epochs_->world() : *core_).options().job; }
  /// Says goodbye to the other ranks without waiting for them. Only the destructor may follow.
  void leave() noexcept;
  bool has_left() const { return leaving_; }
  /// The others have gone on without this rank.
  void be_left_out() { left_out_ = true; }
  bool is_left_out() const { return left_out_; }
  /// Where the other ranks let processes in with which this world began: as they say themselves, and then at the hosts at which this rank
  /// has reached them, since what they say may be of a network that this machine is not in. For the loop's thread.
  const std::vector<Address>& first_doors() const { return first_doors_; }
  /// Waits until all others have read the goodbye of leave(), at most this long.
  void await_left(Duration timeout) noexcept { driver_.wait(left_, timeout); }
  Votes& votes() { return votes_; }
  ReusedBuffers& reused_buffers() { return reused_buffers_; }
  /// The group of all ranks of a world of these epochs, of which there is one. Throws `InvalidArgument` where it was left already.
  static std::shared_ptr<SharedGroup> group_of(const std::shared_ptr<NativeWorld>& self, ringlet::World& world);

 private:
  class StopSwitch;

  void open(web::PageBundle page);
  void meet(MeetingSockets sockets);
  void begin_epochs();
  void note_doors();
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

  const WorldConfig config_;
  const WorldOptions& options_ = config_.options;
  const WorldStart start_;
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
  std::vector<Address> first_doors_;
  TimerId port_timer_ = 0;
  TimerId stop_timer_ = 0;
  std::unique_ptr<StatusSocket> status_;
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
