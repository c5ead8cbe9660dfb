#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "core/base/result.hpp"
#include "core/engine/tasks.hpp"

namespace ringlet {

/// Several collectives and messages with computation between them. A procedure itself never waits: its driver carries out the action that
/// next() returns, then calls next() again. The driver of native code waits on its thread (native/procedure_driver.hpp); that of browsers
/// continues from the completions (procedure_run.hpp). Packing and unpacking happen inside next(), on the driver's thread.
///
/// A collective's group is given as an index into the driver's list of groups.
class Procedure {
 public:
  /// Start this and wait for it; nothing can be done meanwhile.
  struct Run {
    CollectiveTask task;
    std::size_t group = 0;
  };
  /// Start this; it goes on until WaitForOldest.
  struct Start {
    CollectiveTask task;
    std::size_t group = 0;
  };
  /// The same for a message.
  ///@{
  struct Send {
    MessageTask task;
    std::size_t group = 0;
  };
  struct Receive {
    MessageTask task;
    std::size_t group = 0;
  };
  ///@}
  /// Wait for the oldest of those that were started and not waited for.
  struct WaitForOldest {};
  /// All work that the procedure was given has been done, or it has failed. Where more work may follow, collectives that were started may
  /// still be under way.
  struct Done {
    Status status;
  };
  using Action = std::variant<Run, Start, Send, Receive, WaitForOldest, Done>;

  virtual ~Procedure() = default;
  /// Returns the next action. It is called again once that action has succeeded. The buffers of tasks belong to the procedure or were given
  /// to it.
  virtual Action next() = 0;
  /// Called when a collective or the procedure itself has failed and nothing is under way any more.
  virtual void abandon() {}

 protected:
  /// Turn the result of a request into an action: its task, or Done with its failure.
  ///@{
  static Action run(Result<CollectiveTask> task, std::size_t group = 0) { return as<Run>(std::move(task), group); }
  static Action start(Result<CollectiveTask> task, std::size_t group = 0) { return as<Start>(std::move(task), group); }
  static Action send(Result<MessageTask> task, std::size_t group = 0) { return as<Send>(std::move(task), group); }
  static Action receive(Result<MessageTask> task, std::size_t group = 0) { return as<Receive>(std::move(task), group); }
  ///@}

 private:
  template <class Verb, class Task>
  static Action as(Result<Task> task, std::size_t group) {
    if (!task.ok()) return Done{task.status()};
    return Verb{std::move(task).value(), group};
  }
};

}  // namespace ringlet
