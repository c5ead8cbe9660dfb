#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// An operation of a stream that runs, or a message that is under way.
struct Underway {
  std::uint64_t sequence = 0;
  Instant started{};
  int peer = -1;          // of a message: the rank in the group that it goes to or comes from
  bool outgoing = false;  // of a message

  friend bool operator==(const Underway&, const Underway&) = default;
};

/// What a rank does, and has done, as others are told.
struct Activity {
  std::vector<wire::OperationState> running;
  std::uint64_t operations = 0;  // that have ended
  std::optional<Instant> last_ended;
  wire::OperationState last{};

  /// Of an operation that ended at this time; `make_state` is called if it is the last so far.
  template <class MakeState>
  void add_ended(Instant at, MakeState make_state) {
    if (last_ended && *last_ended >= at) return;
    last_ended = at;
    last = make_state();
  }
};

}  // namespace ringlet
