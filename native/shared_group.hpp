#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ringlet/group.hpp>
#include <vector>

#include "core/gradients/agreements.hpp"
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
  Agreements& agreements() { return agreements_; }

  /// Ends the world, on all ranks, since this rank cannot go on.
  void fail_world(std::string_view why) noexcept;

  /// Returns null where `color` is negative.
  std::shared_ptr<SharedGroup> split(const CallOptions& call, int color, int key);

  // Of an elastic world; see Group's.
  bool elastic() const { return world_->elastic(); }
  int world_size() const { return core_.options().size; }
  /// Ok while the world works.
  Status world_failure();
  std::uint32_t epoch() const { return engine_.options().epoch; }
  /// `before` gets the new world's ranks as they are in this group's world.
  std::shared_ptr<SharedGroup> reform(const CallOptions& call, std::vector<int>& before, std::uint64_t& lineage);
  bool agree(bool mine, const CallOptions& call);
  void revoke();

 private:
  template <class Task, class Give>
  Work start_task(const CallOptions& call, Result<Task> task, Packing packing, Give give);
  template <class Task, class Give>
  void run_task(const CallOptions& call, Result<Task> task, Give give);

  int core_rank() const { return core_.options().rank; }
  void run_own(const CallOptions& call, Result<CollectiveTask> task);
  bool world_has_failed() { return !world_failure().ok(); }
  Succession await_succession(std::chrono::milliseconds timeout);
  bool settle_votes();
  bool run_unless_failed(const CallOptions& call, Result<CollectiveTask> task);

  const std::shared_ptr<NativeWorld> world_;
  ringlet::World& core_;  // of this group's epoch
  LoopDriver& driver_;    // the world's
  GroupEngine& engine_;
  SharedAgreements agreements_;
  std::shared_ptr<SharedGroup> next_;  // the world in which agree() found its answer, until reform() returns it
  std::mutex agreeing_, settling_;
  bool settled_ = false;  // Votes were exchanged in this world
};

}  // namespace ringlet::native
