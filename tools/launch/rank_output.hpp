#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tools/job/job_result.hpp"
#include "tools/job/messages.hpp"
#include "tools/launch/line_splitter.hpp"
#include "tools/launch/output_stream.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// Shows the output of a job's ranks line by line on this process' stdout and stderr, and keeps it in log files. Bounded: output is told as
/// taken only when its stream is not congested, and a machine sends no more than its window before that.
class RankOutput {
 public:
  struct Options {
    bool stdout_to_stderr = false;  // for a caller that prints something of its own on stdout
    std::string message_prefix;     // before the caller's own lines
  };
  /// All may run inside a call.
  struct Events {
    /// So much of a machine's stdouts, or stderrs, has been shown.
    std::function<void(std::size_t machine, bool error, std::size_t bytes)> on_taken;
    std::function<void(int error)> on_lost;  // errno, where stdout takes no more bytes, or a reader has gone
    std::function<void()> on_idle;           // everything is written
  };

  RankOutput(uv_loop_t* loop, Options options, Events events);

  /// Each rank's output also goes to rank-R.log in `directory`, byte for byte. Creates the directory and the files, emptying old ones;
  /// throws `LaunchError`.
  void keep_logs(const std::string& directory, int ranks);
  /// Before the first show(), and when ranks are added behind the others. `prefix`: rank_prefix() stands before each line.
  void attach(const std::vector<job::RankExit>& ranks, bool prefix);
  /// Only of ranks that are attached.
  void show(std::size_t machine, const job::Output& output);
  /// No more output will come: the last lines may lack their ends.
  void finish();
  /// A line of the caller's own, on stderr.
  void say(const std::string& text);
  /// Drops what is not written yet and all that comes later.
  void discard();
  bool idle() const;

 private:
  struct Source {
    std::optional<LineSplitter> splitter;  // none: bytes pass as they come
    OutputStream* target;
  };
  struct Log {
    UniqueFd file;
    std::string path;
  };

  void finish(Source& source);
  void write_log(std::size_t rank, std::string_view bytes);
  void settle(const OutputStream& stream);

  const Options options_;
  const Events events_;
  OutputStream err_;
  std::optional<OutputStream> separate_out_;  // none: stdout is the same file as stderr, or is not to be used
  std::vector<OutputStream*> streams_;
  std::vector<Log> logs_;                                                           // empty or one per rank
  std::vector<Source> sources_;                                                     // two per rank
  std::map<std::tuple<const OutputStream*, std::size_t, bool>, std::size_t> owed_;  // bytes not told as taken, by stream, machine and error
  std::string lines_;                                                               // scratch
};

}  // namespace ringlet::launch
