#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ringlet/group.hpp>

#include "core/gradients/agreements.hpp"
#include "native/packing.hpp"
#include "native/world.hpp"

namespace ringlet::native {

/// How an operation ended. Written once, by whoever turns the loop; read after `done`.
struct WorkState {
  std::atomic<bool> done{false};
  Status status;
  Packing packing;  // of what the operation moves
};

/// The group's, for all threads.
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

/// What all values of one group and its works share: the core's group, and the world that it is a part of, which it keeps alive. Any
/// thread.
class SharedGroup : public std::enable_shared_from_this<SharedGroup> {
 public:
  /// The group of all ranks of a world. Once per world.
  explicit SharedGroup(std::shared_ptr<World> world);
  /// Leaves the group, in which no operation may be pending.
  ~SharedGroup();
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  const WorldOptions& options() const { return engine_.options(); }
  Progress& progress() { return progress_; }
  /// As Group::links().
  std::string_view links();
  /// As Group::link_info().
  std::vector<LinkInfo> link_info();

  /// Starts `task`; `run` starts and waits. Both take failed requests, which they hand on. `packing` lives until the end, and is written
  /// back if that is success.
  Work start(const CallOptions& call, Result<CollectiveTask> task, Packing packing = {});
  Work start_send(const CallOptions& call, Result<MessageTask> task, Packing packing);
  Work start_receive(const CallOptions& call, Result<MessageTask> task, Packing packing);
  void run(const CallOptions& call, Result<CollectiveTask> task);
  void run_send(const CallOptions& call, Result<MessageTask> task);
  void run_receive(const CallOptions& call, Result<MessageTask> task);

  /// What does not change of the core's group may be read: options and members.
  const GroupEngine& engine() const { return engine_; }
  Agreements& agreements() { return agreements_; }

  /// Null where `color` is negative.
  std::shared_ptr<SharedGroup> split(const CallOptions& call, int color, int key);

 private:
  SharedGroup(std::shared_ptr<World> world, GroupEngine& engine);
  template <class Task, class Give>
  Work start_task(const CallOptions& call, Result<Task> task, Packing packing, Give give);
  template <class Task, class Give>
  void run_task(const CallOptions& call, Result<Task> task, Give give);

  const std::shared_ptr<World> world_;
  Progress& progress_;  // the world's
  GroupEngine& engine_;
  SharedAgreements agreements_;
};

}  // namespace ringlet::native
