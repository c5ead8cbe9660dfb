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
  std::string host;     ///< the machine that it runs on, if that is known
  bool answers = true;  ///< false if it has not answered within a second; its process may be stopped, or its network
  /// What the rank does instead: "is still in all_gather(f32 x 10, ring) number 40, 3.0 of 8.0 MiB received".
  std::string doing;
};

/// An operation that takes longer than `InitOptions::warn_after`, as one rank sees it. It may still end well.
struct Delay {
  int rank = 0;                        ///< this rank, in the world
  std::string operation;               ///< "all_reduce(sum, f32 x 1000, ring) number 41"
  std::chrono::milliseconds waited{};  ///< since the operation began here
  /// True in the last report about an operation: it was warned of before and is no longer waiting.
  bool over = false;
  /// Whether this is the lowest of the waiting ranks. All of them report the same delay; a program that wants one report takes this rank's.
  bool speaks = true;
  /// The ranks that have not called the operation (of a message: the rank at the other side), and the ranks that do not answer.
  std::vector<Latecomer> late;
  std::string text;  ///< a summary in one line for people
};

/// Called when an operation takes long, again each time that it has taken twice as long, and once when it goes on. It runs on the thread
/// that drives the event loop, which is a waiting caller's or one of Ringlet's own, and blocks all communication meanwhile. It may log or
/// set a flag, but must neither wait, nor call Ringlet, nor throw.
using DelayHandler = std::function<void(const Delay&)>;

}  // namespace ringlet
