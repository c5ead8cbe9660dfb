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
  int peer = -1;          // of a message: the rank in the group that it goes to or comes from; -1: an operation of the stream
  bool outgoing = false;  // of a message

  bool is_message() const { return peer >= 0; }
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
