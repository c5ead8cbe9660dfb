#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ringlet::job {

/// How one rank ended. `code` or `signal` is set once it has ended.
struct RankExit {
  int rank = 0;
  std::string machine{};  // empty: the one that runs the job
  int pid = 0;            // 0: was not started
  std::optional<int> code{};
  std::optional<int> signal{};
  bool stopped = false;          // still ran when it was told to end
  bool lost = false;             // ran on a machine that can no longer be asked
  int exec_error = 0;            // errno, where the process could not become the program
  std::optional<int> follows{};  // not of an elastic job: the rank whose loss had ended its group, as it said
  int restarts = 0;              // how often it was started again; all else is of the last time

  bool succeeded() const noexcept { return code == 0; }
  bool ended() const noexcept { return code || signal; }
};

struct JobResult {
  /// 0 if all ranks exited with 0, in an elastic job one of them; the code of the first rank that failed for good, or 128 + signal; 126 or
  /// 127 if the program cannot be run or nobody allows it; 128 + signal after a forwarded SIGINT or SIGTERM; 141 if the reader of stdout
  /// went away; 2 for a mistake in the options; 1 where a machine was lost, and otherwise.
  int exit_code = 0;
  std::optional<int> first_failed;
  std::vector<RankExit> ranks;
  std::string error;             // why the job could not be carried out
  std::string message;           // otherwise how it ended; empty if all went well
  bool traces_given_up = false;  // by a signal, before they had all come
};

/// "SIGTERM"; "signal 35" for one without a common name.
std::string signal_name(int signal_number);

/// "ranks 0, 1", "rank 0", or nothing.
std::string list_ranks(const std::vector<int>& ranks);
/// The same of those for which `chosen` holds.
std::string list_ranks(const std::vector<RankExit>& ranks, bool (*chosen)(const RankExit&));
/// "; stopped ranks 0, 1", or nothing.
std::string describe_stopped(const std::vector<RankExit>& ranks);
/// "rank 2 on attic (pid 1234) exited with code 3", or "was killed by SIGKILL".
std::string describe_end(const RankExit& rank);
/// "rank 2 on attic (pid 1234) exited with code 3; stopped ranks 0, 1; after it failed rank 4".
std::string describe_failure(const std::vector<RankExit>& ranks, int first_failed);

/// "rank 0 (stopped), rank 1 (killed by SIGKILL, started again 3 times), rank 3 on attic (lost with its machine)": those that did not end
/// well.
std::string describe_failed(const std::vector<RankExit>& ranks);
/// "; started again: rank 1 (2 times), rank 3 (once)", or nothing.
std::string describe_restarts(const std::vector<RankExit>& ranks);
/// "ranks 0, 2 went on to the end without rank 1 (killed by SIGKILL), rank 3 on attic (lost with its machine)".
std::string describe_survival(const std::vector<RankExit>& ranks);

/// "[2 attic] ", which stands before each line of the rank, its number as wide as that of the last one; "[2] " for the machine that runs
/// the job.
std::string rank_prefix(int rank, int world_size, const std::string& machine);

}  // namespace ringlet::job
