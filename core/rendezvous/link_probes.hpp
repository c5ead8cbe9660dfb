#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/world.hpp"
#include "core/ports/event_loop.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Whom a rank measures its link to, one after the other: the next native, and its share of the guests. A guest measures none.
std::vector<int> peers_to_probe(const WorldOptions& options);

/// Measures a native rank's links by probes that its peers send back: single small ones, then long ones in a row, both several times, of
/// which the fastest counts. Belongs to the loop's thread.
class LinkProbes {
 public:
  /// Of one native to one peer, and what they hold at most: who answers them need not take more.
  static constexpr std::size_t kProbesPerPeer = 22, kMaxPadding = 16 << 10;
  using Send = std::function<void(int peer, const wire::LinkProbe& probe)>;

  /// `on_done` runs once, inside start() or on_answer(), with the dearest of each sort.
  LinkProbes(EventLoop& loop, const WorldOptions& options, Send send, std::function<void(const wire::LinkCosts&)> on_done);

  void start();
  /// False where nobody asked for it.
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
  std::int64_t single_ns_ = 0, row_ns_ = 0;  // there and back: the fastest so far
};

/// The dearer of each sort.
wire::LinkCosts dearer(const wire::LinkCosts& one, const wire::LinkCosts& other);

/// What rank 0 announces: the dearest of what the ranks have measured, beside its own settings. What nobody has measured keeps its value.
/// Rounded to powers of two, so that a little noise does not change which way a call goes, and with it the bits of a sum.
wire::Begin placement_of(const wire::LinkCosts& dearest, const WorldOptions& own);

/// Takes over what rank 0 has announced.
Status take_placement(const wire::Begin& announced, World& world);

}  // namespace ringlet
