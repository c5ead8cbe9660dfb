#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/group_engine.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Finds out who holds up an operation whose deadline has passed. The rank that it waits for may itself only be waiting, as along a ring:
/// so that one is asked whom it waits for, then the next, until one has not called the operation. Ends the world with that rank's name.
/// One at a time; bounded by the group's size and by a second. Belongs to the loop's thread.
class Inquiry {
 public:
  explicit Inquiry(GroupHost& host) : host_(host) {}

  bool active() const { return group_ != nullptr; }
  /// About the running operation of a stream.
  void start(GroupEngine& group, std::uint16_t stream);
  /// Drops the inquiry if it is about this group, which is about to go.
  void forget(const GroupEngine& group);
  void stop() { group_ = nullptr; }
  /// An answer of a rank, counted in the world. One that was not asked for any more is ignored.
  void on_answer(int from, const wire::Answer& answer);
  void on_tick(Instant now);

 private:
  /// Whether the operation still runs; otherwise there is nothing to find out any more.
  bool still_overdue();
  void ask(int peer, std::uint64_t sequence);
  void conclude(const Holdup& holdup);

  GroupHost& host_;
  GroupEngine* group_ = nullptr;
  std::uint16_t stream_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint32_t number_ = 0;  // of the last question
  int asked_ = 0;             // the rank in the group that it went to
  std::vector<bool> met_;     // by rank in the group: part of the chain so far
  Instant give_up_at_{};
};

}  // namespace ringlet
