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
#include "native/group_growth.hpp"
#include "native/native_world.hpp"
#include "native/packing.hpp"
#include "native/survivors.hpp"

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
  int interruptions() const { return *world_->start().interruptions; }
  /// For callers that wait by other means: ends the world where they are to be interrupted.
  void poll_interruption();
  /// Why works that have not ended never will.
  Status failure_of_driver() const;
  /// Ends the world, on all ranks, since this rank cannot go on.
  void fail_world(std::string_view why) noexcept;
  /// Ends the world, on all ranks, for what another one has sent, and throws that `protocol_error`, which names it.
  [[noreturn]] void fail_for_violation(const Status& violation);

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
  void revoke();
  /// See Group's; also of a world that is not elastic.
  void leave();

  /// Where processes knock that are to join; empty where the world is not elastic.
  std::string door() const;
  /// The lineage of the world.
  std::uint64_t lineage();
  /// Whether this process has joined the group, and this is its first world.
  bool has_joined() const;
  Survivors& survivors() { return survivors_; }
  /// Of the group of all ranks.
  GroupGrowth& growth() { return growth_; }

  // For those parts that work on the group's world.
  const std::shared_ptr<NativeWorld>& world() const { return world_; }
  int world_rank() const { return core_.options().rank; }
  /// Of this group's epoch. May be used only while holding the loop.
  ringlet::World& core() const { return core_; }
  /// In a stream that programs cannot use.
  void run_own(const CallOptions& call, Result<CollectiveTask> task);
  /// The same. Returns false where the world has failed, but not by this rank's interruption.
  bool run_unless_failed(const CallOptions& call, Result<CollectiveTask> task);
  bool world_has_failed() { return !world_failure().ok(); }
  /// Throws also where this rank has left the world.
  void refuse_unless_elastic() const;
  /// Throws for a group that split() or create() made.
  void refuse_unless_whole_world(const char* call) const;

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

  const std::shared_ptr<NativeWorld> world_;
  ringlet::World& core_;  // of this group's epoch
  LoopDriver& driver_;    // the world's
  GroupEngine& engine_;
  const Interruption interruption_;
  const bool may_be_read_;  // by another rank of this machine
  SharedAgreements agreements_;
  Survivors survivors_{*this};
  GroupGrowth growth_{*this};
};

}  // namespace ringlet::native
