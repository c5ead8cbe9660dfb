#pragma once

#include <atomic>
#include <memory>
#include <ringlet/group.hpp>

#include "core/engine/world.hpp"
#include "core/rendezvous/meeting.hpp"
#include "native/progress.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::native {

/// How an operation ended. Written once, by whoever turns the loop; read after `done`.
struct WorkState {
  std::atomic<bool> done{false};
  Status status;
};

/// How to meet the other ranks: what init() makes of options and environment.
struct WorldConfig {
  WorldOptions options;
  MeetingOptions meeting;
  std::optional<int> listening_descriptor;  // rank 0: listens at the coordinator's address; the world closes it
};

/// A group as a native program holds it: the core's world with a loop, a network and the threads' rules. Any thread.
class World {
 public:
  /// Meets the other ranks; throws the reason if they do not come together.
  explicit World(const WorldConfig& config);
  /// Takes leave of the others; waits at most the close timeout.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const WorldOptions& options() const { return options_; }
  Progress& progress() { return progress_; }

  /// Starts `task` and returns its handle's state; `run` starts and waits. Both take failed requests, which they hand on.
  std::shared_ptr<WorkState> start(const CallOptions& call, Result<CollectiveTask> task);
  std::shared_ptr<WorkState> start_send(const CallOptions& call, Result<MessageTask> task);
  std::shared_ptr<WorkState> start_receive(const CallOptions& call, Result<MessageTask> task);
  void run(const CallOptions& call, Result<CollectiveTask> task);
  void run_send(const CallOptions& call, Result<MessageTask> task);
  void run_receive(const CallOptions& call, Result<MessageTask> task);

 private:
  template <class Task, class Give>
  std::shared_ptr<WorkState> start_task(const CallOptions& call, Result<Task> task, Give give);
  template <class Task, class Give>
  void run_task(const CallOptions& call, Result<Task> task, Give give);
  Completion completion_of(std::shared_ptr<WorkState> state);
  void meet(const WorldConfig& config);
  void close();

  const WorldOptions options_;
  Progress progress_;
  std::unique_ptr<UvNetwork> network_;
  std::unique_ptr<ringlet::World> core_;
};

}  // namespace ringlet::native
