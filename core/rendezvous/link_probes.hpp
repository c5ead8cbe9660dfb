#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/world.hpp"
#include "core/ports/event_loop.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// The ranks to which a rank measures its links, one after the other: the next native rank, and its share of the guests. A guest measures
/// none.
std::vector<int> peers_to_probe(const WorldOptions& options);

/// Measures a native rank's links by probes that its peers send back: single small ones, then rows of long ones. Each is repeated, and the
/// fastest counts. Belongs to the loop's thread.
class LinkProbes {
 public:
  /// The number of probes to one peer, and the length of a long one. A peer does not have to answer more, nor longer ones.
  static constexpr std::size_t kProbesPerPeer = 22, kMaxPadding = 16 << 10;
  using Send = std::function<void(int peer, const wire::LinkProbe& probe)>;

  /// `on_done` runs once, inside start() or on_answer(), with the highest cost of each kind of link.
  LinkProbes(EventLoop& loop, const WorldOptions& options, Send send, std::function<void(const wire::LinkCosts&)> on_done);

  void start();
  /// Returns false where no such answer was due.
  bool on_answer(int from, const wire::LinkProbe& answer);

 private:
  void begin_round();
  void end_round(std::int64_t took_ns);
  void end_peer();

  EventLoop& loop_;
  const std::vector<int> peers_;
  const int natives_;
  Send send_;
  std::function<void(const wire::LinkCosts&)> on_done_;
  wire::LinkCosts costs_{};
  std::size_t peer_ = 0;   // index of the one being probed
  std::size_t round_ = 0;  // of this peer
  std::uint32_t sent_ = 0, answered_ = 0;
  Instant round_began_{};
  std::int64_t single_ns_ = 0, row_ns_ = 0;  // the fastest round trips so far
};

/// Returns the higher cost of each kind of link.
wire::LinkCosts dearer(const wire::LinkCosts& one, const wire::LinkCosts& other);

/// The announcement of rank 0: the highest costs that the ranks have measured, and its own settings; a cost that no rank has measured is
/// that of the settings. Costs are rounded to powers of two, so that a little noise changes neither the algorithm of a call nor the bits of
/// a sum.
wire::Begin placement_of(const wire::LinkCosts& dearest, const WorldOptions& own);

/// Applies rank 0's announcement to this rank's world.
Status take_placement(const wire::Begin& announced, World& world);

}  // namespace ringlet
