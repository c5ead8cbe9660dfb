#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/time.hpp"

namespace ringlet::native {

/// Asks the process manager of an MPI job by version 1 of its text protocol (PMI; the source is MPICH's "PMI: A Scalable Parallel
/// Process-Management Interface for Extreme-Scale Systems", Balaji et al. 2010). It leaves the protocol's beginning to an MPI in the same
/// process.
class PmiClient {
 public:
  /// `descriptor` stays the caller's, and is open as long as this object. `interrupted` is asked ten times a second while waiting; empty:
  /// never.
  PmiClient(int descriptor, Duration timeout, std::function<bool()> interrupted);

  // These throw `Timeout`, `Cancelled`, or `IoError` with what the manager has said.

  /// The name of what the job's processes have in common, which no other job has.
  std::string job();
  /// Hands a value of `giver`, who calls this with it, to all processes of the job. Each calls it once for one key.
  std::string share(const std::string& key, const std::optional<std::string>& given);
  /// Says that this process will end well; else the manager ends the others when it does. No call may follow. Throws nothing.
  void finish() noexcept;

 private:
  std::string ask(const std::string& request, const std::string& wanted);
  std::string read_line();
  [[noreturn]] void fail(const std::string& what) const;

  const int descriptor_;
  const Duration timeout_;
  const std::function<bool()> interrupted_;
  std::string received_;
};

}  // namespace ringlet::native
