#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/job/job_result.hpp"
#include "tools/job/messages.hpp"
#include "tools/trace/part_files.hpp"

namespace ringlet::command {

/// One sentence if --trace cannot write this file; nothing if it can, or is not given.
std::optional<std::string> find_trace_mistake(const std::string& file);

/// The trace of a job's ranks, where --trace names a file. A trace that fails does not change how the job ends.
class JobTrace {
 public:
  /// `subcommand` stands before its lines on stderr; an empty `file` keeps no trace.
  JobTrace(std::string subcommand, const std::string& file);

  /// Takes what comes from the ranks' machines. This object outlives the function, which is empty where there is no trace.
  std::function<void(const job::TracePiece&)> taker();
  /// Puts the file together, and says on stderr what became of it. SIGINT and SIGTERM end that, and leave the parts.
  void finish(const job::JobResult& result);

 private:
  void tell(const std::string& text) const;
  /// Says what the trace lacks. Returns whether there is anything of it.
  bool tell_lacks(const job::JobResult& result) const;

  const std::string subcommand_, file_;
  std::optional<trace::PartFiles> parts_;
};

}  // namespace ringlet::command
