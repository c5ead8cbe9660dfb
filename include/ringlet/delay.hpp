#pragma once

#include <ringlet/detail/language.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace ringlet {

/// A rank that others wait for.
struct Latecomer {
  int rank = -1;        ///< in the world
  std::string host;     ///< where it runs, as far as it is known
  bool answers = true;  ///< false: it did not within a second; its process may be stopped, or its network
  /// What it does instead: "is still in all_gather(f32 x 10, ring) number 40, 3.0 of 8.0 MiB received".
  std::string doing;
};

/// An operation that takes longer than `InitOptions::warn_after`, as one rank sees it. It may still end well.
struct Delay {
  int rank = 0;                        ///< this one, in the world
  std::string operation;               ///< "all_reduce(sum, f32 x 1000, ring) number 41"
  std::chrono::milliseconds waited{};  ///< since the operation began here
  /// It has gone on after a warning: the last word about this operation.
  bool over = false;
  /// Of the ranks that wait, this is the lowest. The others know the same, but where one voice is enough it is this one's.
  bool speaks = true;
  /// Who has not called the operation or, of a message, the other side; and who does not answer.
  std::vector<Latecomer> late;
  std::string text;  ///< all of this in a line for people
};

/// Called where an operation takes long, again each time when it has taken twice as long, and once when it goes on. It runs on the thread
/// that turns the loop, be it a caller's that waits or one of Ringlet's, and everything waits for it: it may note, log or set a flag, but
/// must neither wait nor call Ringlet, and must not throw.
using DelayHandler = std::function<void(const Delay&)>;

}  // namespace ringlet
