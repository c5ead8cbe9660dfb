#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/job/job_result.hpp"
#include "tools/job/messages.hpp"
#include "tools/trace/part_files.hpp"

namespace ringlet::command {

/// Takes the name of --trace for this process, until `parts` is gone; an empty `file` leaves it null. Returns one sentence where the file
/// cannot be written.
std::optional<std::string> open_trace_parts(const std::string& file, std::unique_ptr<trace::PartFiles>& parts);

/// The trace of a job's ranks, where --trace names a file. A trace that fails does not change how the job ends.
class JobTrace {
 public:
  /// `subcommand` stands before its lines on stderr; without `parts` there is no trace.
  JobTrace(std::string subcommand, std::unique_ptr<trace::PartFiles> parts)
      : subcommand_(std::move(subcommand)), parts_(std::move(parts)) {}

  /// Takes what comes from the ranks' machines. This object outlives the function, which is empty where there is no trace.
  std::function<void(const job::TracePiece&)> taker();
  /// Puts the file together, and says on stderr what became of it. Signals end that (StopSignals), and leave the parts. Once.
  void finish(const job::JobResult& result);

 private:
  void tell(const std::string& text) const;
  /// Says what has not come. Returns whether there is anything of the trace.
  bool tell_missing(const job::JobResult& result) const;
  void merge(const job::JobResult& result);

  const std::string subcommand_;
  const std::unique_ptr<trace::PartFiles> parts_;
};

}  // namespace ringlet::command
