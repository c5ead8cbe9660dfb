#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/job/messages.hpp"

namespace ringlet::launch {

/// More ranks than this on one machine are taken for a slip of the keyboard; it also bounds descriptors (four per rank).
inline constexpr int kMaxRanks = job::kMaxRanksPerMachine;
inline constexpr int kMaxGuests = 256;

/// A numeric address of this machine, or one that stands for all of them, and a port. Port 0 is any that is free.
struct ListenAt {
  std::string host = "127.0.0.1";
  int port = 0;
};

/// The program of a launch, and how its output and its end are handled.
struct LaunchOptions {
  int world_size = 1;
  std::optional<int> ranks_here;                                 // the most that one machine starts; unset: all
  std::vector<std::string> command;                              // program and arguments; a name without '/' is searched in the ranks' PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to each rank's, after the launcher's own variables
  std::optional<std::string> working_directory;
  std::optional<std::string> output_directory;    // each rank's output also goes to rank-R.log there, byte for byte
  std::optional<int> stdin_rank;                  // inherits the launcher's stdin; the others read /dev/null
  bool prefix = true;                             // "[rank] " before each line
  std::optional<int> terminal_columns;            // width of the terminal that shows the ranks' output
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

/// A sentence that names the wrong value and the remedy; nothing if the options can be used.
std::optional<std::string> find_mistake(const LaunchOptions& options);

bool is_directory(const std::string& path);

}  // namespace ringlet::launch
