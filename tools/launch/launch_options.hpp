#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringlet::launch {

/// More ranks than this on one machine are taken for a slip of the keyboard; it also bounds descriptors (four per rank).
inline constexpr int kMaxRanks = 224;
inline constexpr int kMaxGuests = 256;

/// A numeric address of this machine, or one that stands for all, and a port; 0: any that is free.
struct ListenAt {
  std::string host = "127.0.0.1";
  int port = 0;
};

/// What to start, and how its output and its end are handled.
struct LaunchOptions {
  int world_size = 1;
  int first_rank = 0;                                            // of those that this process starts
  std::optional<int> ranks_here;                                 // how many those are; unset: all
  std::vector<std::string> command;                              // program and arguments; a name without '/' is searched in the ranks' PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to each rank's, after the launcher's own variables
  std::optional<std::string> working_directory;
  std::optional<std::string> output_directory;    // each rank's output also goes to rank-R.log there, byte for byte
  std::optional<int> stdin_rank;                  // inherits the launcher's stdin; the others read /dev/null
  bool prefix = true;                             // "[rank] " before each line
  std::vector<std::string> labels;                // what stands there instead of the number, by rank; empty: the number
  std::optional<int> terminal_columns;            // width of the terminal that shows the ranks' output; told to them, less the prefix
  std::string message_prefix = "ringlet launch";  // before the launcher's own lines
  bool stdout_to_stderr = false;                  // for a caller that prints something of its own on stdout
  std::chrono::milliseconds linger{2000};         // from the first failure to SIGTERM for the other ranks
  std::chrono::milliseconds grace{5000};          // from SIGTERM to SIGKILL
  ListenAt listen_at;                             // where the ranks meet, and those of other machines and browsers come in
  int guests = 0;                                 // ranks beyond those started here, which come in by themselves
  std::optional<int> page_fd;                     // rank 0 inherits it: the packed page that it serves
  std::function<void(int)> on_listening;          // gets the port before the ranks are started
  std::string helper_path;                        // the `ringlet` binary, which starts itself as guard and as each rank's first image
};

/// How one rank ended. `code` or `signal` is set once it has ended.
struct RankExit {
  int rank = 0;
  int pid = 0;  // 0: was not started
  std::optional<int> code;
  std::optional<int> signal;
  bool stopped = false;  // still ran when the launcher ended it
  bool lost = false;     // ran on a machine that can no longer be asked
  std::string host;      // where it ran, where that is another machine

  bool succeeded() const noexcept { return code == 0; }
};

struct LaunchResult {
  /// 0 if all ranks exited with 0; the first failed rank's code, or 128 + signal; 126 or 127 if the program cannot be run;
  /// 128 + signal after a forwarded SIGINT or SIGTERM; 141 if the reader of stdout went away; 2 for a mistake in the options; 1 otherwise.
  int exit_code = 0;
  std::optional<int> first_failed;
  std::vector<RankExit> ranks;
  std::string error;    // why the launch could not be carried out
  std::string message;  // otherwise how it ended; empty if all went well
};

/// What is wrong with the options, as a sentence that names the value and the remedy; nothing if they can be used. Touches no file.
std::optional<std::string> find_mistake(const LaunchOptions& options);

}  // namespace ringlet::launch
