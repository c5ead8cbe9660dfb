#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/link_probes.hpp"

namespace ringlet {

/// The last phase of a meeting, once a rank has all its links. In a world with guests, or where parts follow the speed of links, the native
/// ranks measure their links. Each rank tells rank 0 that it is ready, what it has measured and where its door is; when all are ready, rank
/// 0 announces the placement and, in an elastic world, the doors of the native ranks, and operations may begin. A failure makes the world
/// fail. Belongs to the loop's thread.
class ReadyBarrier {
 public:
  /// Loop and world outlive it. `door` is MeetingOptions::door. `on_passed` runs once, inside enter() or on_control(), when the world has
  /// its placement and its doors.
  ReadyBarrier(EventLoop& loop, World& world, const Address& door, std::function<void()> on_passed);

  /// This rank has all its links. To be called once.
  void enter();
  bool entered() const { return entered_; }
  /// Takes a message that belongs to the barrier. Probes of others may come before this rank has entered. Returns false, and does nothing,
  /// where the message does not belong here, or not at this time.
  bool on_control(int from, const wire::ControlMessage& message);
  /// On rank 0: the ranks that are not ready, each with what it last said.
  std::string awaited_text() const;
  /// On rank 0: the one of them that most likely holds the others up, or -1. It is the one with which most ranks have no link; of several,
  /// one that has said nothing itself.
  int latest() const;

 private:
  int rank() const { return world_.options().rank; }
  bool on_probe(int from, const wire::LinkProbe& probe);
  std::vector<int> awaited() const;
  /// Whether the link with this rank does not leave the machine.
  bool stays_here(int peer) const;
  /// The lowest native rank with which this one has a link inside its machine, or this rank.
  int own_machine() const;
  /// On rank 0: by native rank, the lowest rank of its machine; empty where not all are known.
  std::vector<std::uint32_t> machines() const;
  void on_ready(int from, const wire::Ready& ready);
  void announce(const wire::Begin& placement);
  void on_begin(const wire::Begin& begin);

  World& world_;
  std::function<void()> on_passed_;
  LinkProbes probes_;
  bool entered_ = false;
  std::size_t probes_answered_ = 0;
  // On rank 0.
  std::vector<bool> ready_;                             // by rank
  std::vector<std::optional<std::vector<int>>> unmet_;  // by rank: what it last said
  std::vector<wire::Endpoint> doors_;                   // by rank, of the native ones
  std::vector<std::uint32_t> machines_;                 // by rank, of the native ones: what Ready says
  wire::LinkCosts dearest_{};
  MeasuredCosts measured_;
};

}  // namespace ringlet
