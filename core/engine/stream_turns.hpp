#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "core/base/check.hpp"
#include "core/ports/event_loop.hpp"

namespace ringlet {

/// The order of calls on a world's streams, of all its groups, where a call may be a procedure: what is called on its stream while it runs
/// waits behind it, as behind a call that blocks.
class StreamTurns {
 public:
  /// Runs `start`, a single operation's, now or when the procedures that were called before it have ended.
  void add(std::uint16_t stream, Task start) { take(stream, {std::move(start), false}); }
  /// Runs `start`, a procedure's, in the same way. The stream is its own until end().
  void add_procedure(std::uint16_t stream, Task start) { take(stream, {std::move(start), true}); }
  /// The procedure that has the stream has ended.
  void end(std::uint16_t stream) {
    const auto taken = taken_.find(stream);
    RINGLET_CHECK(taken != taken_.end());
    while (!taken->second.empty()) {
      const Turn turn = std::move(taken->second.front());
      taken->second.pop_front();
      turn.start();
      if (turn.keeps) return;
    }
    taken_.erase(stream);
  }
  /// Nobody has a stream.
  bool idle() const { return taken_.empty(); }

 private:
  struct Turn {
    Task start;
    bool keeps;  // until end()
  };

  void take(std::uint16_t stream, Turn turn) {
    if (const auto taken = taken_.find(stream); taken != taken_.end()) return taken->second.push_back(std::move(turn));
    if (turn.keeps) taken_.try_emplace(stream);
    turn.start();
  }

  std::unordered_map<std::uint16_t, std::deque<Turn>> taken_;  // what waits on it
};

}  // namespace ringlet
