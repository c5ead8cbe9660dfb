#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/world.hpp"
#include "core/rendezvous/link_probes.hpp"

namespace ringlet {

/// The last part of a meeting, from the moment on at which a rank has all its links: in a world with guests the natives measure theirs;
/// each rank tells rank 0 that it is ready, and what it has measured; when all are, rank 0 announces the placement and that it begins. What
/// goes wrong fails the world. Belongs to the loop's thread.
class Opening {
 public:
  /// `on_open` runs once, inside a call of the other two, when the world has its placement and operations may start.
  Opening(EventLoop& loop, World& world, std::function<void()> on_open);

  /// This rank has all its links. Once.
  void links_are_there();
  bool has_links() const { return has_links_; }
  /// Takes a message that belongs to the opening; others' probes may come before this rank has all its links. False: it does not belong to
  /// it, or not now, and nothing was done.
  bool on_control(int from, const wire::ControlMessage& message);
  /// On rank 0: who is not ready.
  std::vector<int> awaited() const;

 private:
  int rank() const { return world_.options().rank; }
  bool on_probe(int from, const wire::LinkProbe& probe);
  void on_ready(int from, const wire::LinkCosts& measured);
  void on_begin(const wire::Begin& begin);

  World& world_;
  std::function<void()> on_open_;
  LinkProbes probes_;
  bool has_links_ = false;
  std::size_t probes_answered_ = 0;
  // On rank 0.
  std::vector<bool> ready_;
  wire::LinkCosts dearest_{};
};

}  // namespace ringlet
