#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/job/job.hpp"

namespace ringlet::launch {

/// More ranks than this on one machine are taken for a slip of the keyboard; it also bounds descriptors (five per rank).
inline constexpr int kMaxRanks = job::kMaxRanksPerMachine;

/// A job whose machines are given, and how its output is handled.
struct LaunchOptions {
  job::JobOptions job;
  int world_size = 1;
  std::string program;                            // a name without '/' is searched in the ranks' PATH
  std::string directory;                          // in which the ranks run; empty: the launcher's own, or a host's
  std::optional<std::string> output_directory;    // each rank's output also goes to rank-R.log there, byte for byte
  std::string message_prefix = "ringlet launch";  // before the launcher's own lines
  bool stdout_to_stderr = false;                  // for a caller that prints something of its own on stdout
  job::BindPort listen_at{"127.0.0.1", 0};        // where the ranks meet, and those of other machines and browsers come in
  int guests = 0;                                 // ranks beyond those started here, which come in by themselves
  std::optional<int> page_fd;                     // the packed page; rank 0 inherits it, or all ranks where there is a page_socket
  std::optional<int> page_socket;                 // where guests come and go while the job runs: all ranks inherit it (native/door.hpp)
  std::function<void(int)> on_listening;          // gets the port before the ranks are started
  std::function<void(const job::TracePiece&)> on_trace{};  // set where the job's StartRanks asks for traces
  std::string helper_path;  // the `ringlet` binary, which starts itself as guard and as each rank's first image
};

}  // namespace ringlet::launch
