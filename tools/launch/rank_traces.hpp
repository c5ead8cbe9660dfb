#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "tools/job/messages.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// The files that processes of ranks on this machine write their traces into, and that are sent when these have ended, so that nothing of
/// it crosses the network while they train. A file has no name: nothing is left of it, whatever becomes of the processes.
class RankTraces {
 public:
  /// `on_piece` gets a piece of a file, then the next one after take(); after a file's last bytes an empty one. It may run inside a call.
  explicit RankTraces(std::function<void(job::TracePiece)> on_piece) : on_piece_(std::move(on_piece)) {}

  /// Makes a file for a rank's process, which was started after `restarts` others, and returns its descriptor; -1 and errno where that
  /// fails.
  int open(int rank, int restarts);
  /// The process of the rank is gone.
  void send(int rank, int restarts);
  /// The last piece has been taken.
  void take();
  /// Nobody takes any: forgets all.
  void drop();
  /// Nothing is to be sent, of processes that are gone.
  bool idle() const { return ended_.empty(); }

 private:
  struct File {
    int rank = 0, restarts = 0;
    UniqueFd descriptor;
    std::int64_t sent_bytes = 0;
    bool is_whole = false;  // its empty piece has been sent
  };
  void send_piece();

  const std::function<void(job::TracePiece)> on_piece_;
  std::map<std::pair<int, int>, UniqueFd> open_;  // by rank and restarts
  std::deque<File> ended_;                        // the first one is being sent
  bool dropped_ = false;
};

}  // namespace ringlet::launch
