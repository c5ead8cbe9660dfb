#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "core/base/result.hpp"
#include "core/engine/tasks.hpp"

namespace ringlet {

/// Several collectives with computing between them, that never waits: whoever drives it does what next() says, then asks again. Native code
/// waits between (native/procedure_driver.hpp), a browser goes on from completions (procedure_run.hpp). Packing and unpacking happen inside
/// next(), on the driver's thread.
///
/// A collective's group is its position in the list of groups that the driver was given.
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
  /// Wait for the oldest of those that were started and not waited for.
  struct WaitForOldest {};
  /// All that it was given has been done, or it has failed. Where more may be given to it, what was started may still be under way.
  struct Done {
    Status status;
  };
  using Action = std::variant<Run, Start, WaitForOldest, Done>;

  virtual ~Procedure() = default;
  /// What to do now; asked again once that has been done in success. Buffers of tasks are the procedure's, or were given to it.
  virtual Action next() = 0;
  /// It has failed, by a collective or by itself, and nothing is under way any more.
  virtual void abandon() {}

 protected:
  /// What a request became: its task, or the end.
  ///@{
  static Action run(Result<CollectiveTask> task, std::size_t group = 0) { return as<Run>(std::move(task), group); }
  static Action start(Result<CollectiveTask> task, std::size_t group = 0) { return as<Start>(std::move(task), group); }
  ///@}

 private:
  template <class Verb>
  static Action as(Result<CollectiveTask> task, std::size_t group) {
    if (!task.ok()) return Done{task.status()};
    return Verb{std::move(task).value(), group};
  }
};

}  // namespace ringlet
