#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ringlet/group.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/gradients/agreements.hpp"
#include "native/growth.hpp"
#include "native/native_world.hpp"
#include "native/packing.hpp"

namespace ringlet::native {

/// The outcome of an operation. Written once, by the thread that turns the loop, and read only after `done` is set.
struct WorkState {
  DoneFlag done;
  Status status;
  Packing packing;  // of the operation's buffers
};

/// The trees that a group's ranks have agreed on. Any thread.
class SharedAgreements final : public Agreements {
 public:
  bool contains(std::uint64_t hash) const override {
    const std::lock_guard lock(mutex_);
    return Agreements::contains(hash);
  }
  void add(std::uint64_t hash) override {
    const std::lock_guard lock(mutex_);
    Agreements::add(hash);
  }
  Residuals take_residuals(std::uint64_t hash) override {
    const std::lock_guard lock(mutex_);
    return Agreements::take_residuals(hash);
  }
  void keep_residuals(std::uint64_t hash, Residuals residuals) override {
    const std::lock_guard lock(mutex_);
    Agreements::keep_residuals(hash, std::move(residuals));
  }

 private:
  mutable std::mutex mutex_;
};

/// Checks the options of a call that requests.hpp does not see, and sets its timeout.
Status check_call(const CallOptions& call, Duration& timeout);

/// The state that all Group values of one group, and their Works, share: the core's group, and its world, which this object keeps alive.
/// Any thread.
class SharedGroup : public std::enable_shared_from_this<SharedGroup> {
 public:
  /// Makes the group of all ranks of a world. To be used once per world.
  explicit SharedGroup(std::shared_ptr<NativeWorld> world);
  SharedGroup(std::shared_ptr<NativeWorld> world, ringlet::World& core, GroupEngine& engine);
  /// Leaves the group, in which no operation may be pending.
  ~SharedGroup();
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  const WorldOptions& options() const { return engine_.options(); }
  LoopDriver& driver() { return driver_; }
  /// By the speeds that operations have which are called now.
  Topology topology();
  /// See Group::links().
  std::string_view links();
  /// See Group::link_info().
  std::vector<LinkInfo> link_info();

  /// start() begins `task`; run() also waits for it. Both accept a failed request and report its failure. `packing` lives until the
  /// operation ends, and is written back if the operation succeeds.
  Work start(const CallOptions& call, Result<CollectiveTask> task, Packing packing = {});
  Work start_send(const CallOptions& call, Result<MessageTask> task, Packing packing);
  Work start_receive(const CallOptions& call, Result<MessageTask> task, Packing packing);
  void run(const CallOptions& call, Result<CollectiveTask> task);
  void run_send(const CallOptions& call, Result<MessageTask> task);
  void run_receive(const CallOptions& call, Result<MessageTask> task);

  /// For reading the parts of the core's group that do not change: options and members.
  const GroupEngine& engine() const { return engine_; }
  Agreements& agreements() {
    driver_.check();
    return agreements_;
  }

  /// How a caller of this group that waits is interrupted: by the end of the world.
  const Interruption& interruption() const { return interruption_; }
  /// How often that has happened in this world and those before it.
  int interruptions() const { return *world_->config().interruptions; }
  /// For callers that wait by other means: ends the world where they are to be interrupted.
  void poll_interruption();
  /// Why works that have not ended never will.
  Status failure_of_driver() const;
  /// Ends the world, on all ranks, since this rank cannot go on.
  void fail_world(std::string_view why) noexcept;
  /// Ends the world, on all ranks, for what another one has sent, and throws that `protocol_error`, which names it.
  [[noreturn]] void fail_world(const Status& violation);

  /// Returns null where `color` is negative.
  std::shared_ptr<SharedGroup> split(const CallOptions& call, int color, int key);

  /// See Group's.
  std::shared_ptr<SharedGroup> create(const CallOptions& call, std::vector<int> ranks, int tag);

  // Of an elastic world; see Group's.
  bool elastic() const { return world_->elastic(); }
  int world_size() const { return core_.options().size; }
  /// Ok while the world works.
  Status world_failure();
  std::uint32_t epoch() const { return engine_.options().epoch; }
  /// `before` gets the new world's ranks as they are in this group's world.
  std::shared_ptr<SharedGroup> reform(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage);
  bool agree(bool mine, const CallOptions& call);
  /// The same; each of `least` becomes its least over all ranks, where no rank was lost.
  bool agree(bool mine, const CallOptions& call, std::span<std::int32_t> least);
  void revoke();
  /// See Group's; also of a world that is not elastic.
  void leave();

  // How the group of all ranks of an elastic world grows (growth.hpp). The members form the next world beside this one, in the background,
  // and switch to it together.

  /// Where processes knock that are to join; empty where the world is not elastic.
  std::string door() const;
  /// The lineage of the world.
  std::uint64_t lineage();
  /// Whether this process has joined the group, and this is its first world.
  bool has_joined() const;
  /// How many processes and guests knock at this rank's door and may be admitted now.
  int waiting();
  /// How many guests are at this rank's door.
  int guests_at_door();
  /// Nobody is told any more who comes to the door.
  void end_presence();
  /// A collective. Begins to form a world of all ranks and the processes that knock anywhere. Returns false on all ranks where there are
  /// none. A growth that has begun before is dropped.
  bool begin_growth(const CallOptions& call);
  /// How the growth stands on this rank.
  GrowthState growth();
  /// A collective, the ranks' call of agree(): where the next world is ready on all, returns its group on all, even if a rank is lost
  /// meanwhile, which the next call there then tells. Otherwise returns null on all, and the growth is dropped. No operation of this world
  /// may be pending. After the switch this rank has left this world.
  std::shared_ptr<SharedGroup> finish_growth(const CallOptions& call);
  /// Gives the growth up, if there is one; processes that were to join knock again. This is not a collective: the growth then fails on the
  /// other ranks, too.
  void drop_growth();
  /// What this rank tells the others, the least of which says what grow() does on all: it begins a growth, gives it up, or returns the next
  /// world's group like finish_growth().
  GrowthStanding growth_standing();
  std::shared_ptr<SharedGroup> grow(GrowthStanding least, const CallOptions& call);
  /// All of the above, one thing at each call, so that no call waits for those that join: returns the next world's group once it is ready.
  /// In a world with guests this is no collective, and ends the epoch where somebody knocks.
  std::shared_ptr<SharedGroup> admit(const CallOptions& call);
  /// A collective. Admits the guests with which the group begins, once they knock; see await_first_guests().
  std::shared_ptr<SharedGroup> admit_first_guests(int guests, bool is_late);
  /// For a rank that the others went on without: joins them again by one of the doors of this world's other ranks. Throws like init().
  std::shared_ptr<SharedGroup> rejoin();
  /// For a process that has joined: waits until the members have switched to this world, and returns the group in which they are, which is
  /// that of a later epoch where a rank was lost meanwhile. Throws where they have given it up.
  std::shared_ptr<SharedGroup> await_members(const wire::Ticket& ticket);

 private:
  template <class Task, class Give>
  Work start_task(const CallOptions& call, Result<Task> task, Packing packing, Give give);
  template <class Task, class Give>
  std::shared_ptr<SharedGroup> make_part(const CallOptions& call, Task task, Give give);
  template <class Task, class Give>
  void run_task(const CallOptions& call, Result<Task> task, Give give);

  /// For ReusedBuffers.
  void count_use(const CollectiveTask& task);
  void count_use(const MessageTask& task) { count_use(task.source); }
  void count_use(ConstBytes buffer);
  int core_rank() const { return core_.options().rank; }
  void run_own(const CallOptions& call, Result<CollectiveTask> task);
  bool world_has_failed() { return !world_failure().ok(); }
  Succession await_succession(std::chrono::milliseconds timeout);
  std::shared_ptr<SharedGroup> reform_world(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage);
  std::shared_ptr<SharedGroup> follow(ringlet::World& next);
  void refuse_unless_whole_world(const char* call) const;
  bool settle_votes();
  void refuse_unless_admitting() const;
  void send_guests_away();
  std::vector<Address> doors_of_others();
  std::shared_ptr<Growth> form_next(const CallOptions& call, const Knocks::Chosen& own, const std::shared_ptr<MeetingStop>& stop);
  std::string coordinator_host();
  WorldConfig config_of_growth(const GrowthPlan& plan);
  void send_tickets(const WorldConfig& next, const Address& coordinator, const GrowthPlan& plan);
  std::shared_ptr<Growth> current_growth();
  void enter_after(const std::shared_ptr<SharedGroup>& before);
  std::shared_ptr<WorkState> start_barrier();
  bool run_unless_failed(const CallOptions& call, Result<CollectiveTask> task);

  const std::shared_ptr<NativeWorld> world_;
  ringlet::World& core_;  // of this group's epoch
  LoopDriver& driver_;    // the world's
  GroupEngine& engine_;
  const Interruption interruption_;
  const bool may_be_read_;  // by another rank of this machine
  SharedAgreements agreements_;
  std::mutex following_;
  std::shared_ptr<SharedGroup> next_;  // of the epoch after this one, until reform() returns the last one
  std::mutex agreeing_, settling_;
  bool settled_ = false;  // Votes were exchanged in this world
  std::mutex growing_;
  std::shared_ptr<Growth> growth_;
};

}  // namespace ringlet::native
