#pragma once

#include <cstdint>

#include "core/base/time.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

class GroupEngine;

/// A reference to an operation of a stream that runs on this rank, or to a message that is under way.
struct Pending {
  GroupEngine* group = nullptr;
  std::uint16_t stream = 0;
  std::uint64_t sequence = 0;
  Instant started{};
  /// Of a message: the rank in the group that it goes to or comes from, or kAnyPeer.
  int peer = kNoPeer;
  bool outgoing = false;  // of a message

  static constexpr int kNoPeer = -1;   // it is an operation of the stream
  static constexpr int kAnyPeer = -2;  // the message may come from any rank
  bool is_message() const { return peer != kNoPeer; }
  friend bool operator==(const Pending&, const Pending&) = default;
};

/// Adds `operations` that have ended to a rank's state; the last of them ended `ago`. `describe` is called for it if `state` has none that
/// ended later.
template <class Describe>
void add_ended(wire::RankState& state, std::uint64_t operations, Duration ago, Describe describe) {
  state.operations += operations;
  const auto milliseconds = static_cast<std::uint64_t>(ago.whole_milliseconds());
  if (operations > 0 && (state.last.call.empty() || milliseconds < state.last.milliseconds)) state.last = describe();
}

}  // namespace ringlet
