#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/world.hpp"
#include "core/ports/event_loop.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// The ranks to which a rank measures its links, one after the other: with WorldOptions::measures_speeds() the next native rank but one,
/// then the next native rank, and its share of the guests. A guest measures none, and without guests and measures_speeds() nobody does.
std::vector<int> peers_to_probe(const WorldOptions& options);

/// Measures a native rank's links by probes that its peers send back: single small ones, then rows of long ones. Each is repeated, and the
/// fastest counts. Where the ranks measure speeds, the rows to natives are longer, the first of them only fills the buffers on the way, and
/// ranks take turns, so that no link carries two measurements: a rank that is done with the next native gives it the turn by one more small
/// probe. Every kTurns-th rank begins. Belongs to the loop's thread.
class LinkProbes {
 public:
  /// The number of probes to one peer, and the length of a long one. A peer does not have to answer more, nor longer ones.
  static constexpr std::size_t kProbesPerPeer = 22, kMaxPadding = 16 << 10;
  /// The number of probes to a native where speeds are measured.
  static constexpr std::size_t kProbesForSpeed = 387;
  /// How many native ranks, one after the other, have one turn among them.
  static constexpr int kTurns = 8;
  struct Measured {
    wire::LinkCosts dearest{};                           // the highest cost of each kind of link
    std::uint64_t next_byte_ps = 0, second_byte_ps = 0;  // as in wire::Ready
  };
  using Send = std::function<void(int peer, const wire::LinkProbe& probe)>;

  /// `stays_here` says whether the link with a rank does not leave this machine, which makes its speed no matter. `on_done` runs once,
  /// inside one of the functions below.
  LinkProbes(EventLoop& loop, const WorldOptions& options, Send send, std::function<bool(int peer)> stays_here,
             std::function<void(const Measured&)> on_done);

  void start();
  /// A probe of another rank has come, which may give this rank the turn.
  void on_probe(int from, const wire::LinkProbe& probe);
  /// Returns false where no such answer was due.
  bool on_answer(int from, const wire::LinkProbe& answer);

 private:
  bool to_next() const { return peers_[peer_] == next_; }
  std::size_t rows() const;
  std::size_t row_length() const;
  bool is_row(std::size_t round) const;
  void begin_peer();
  void begin_round();
  void end_round(std::int64_t took_ns);
  void end_peer();

  EventLoop& loop_;
  const std::vector<int> peers_;
  const int natives_;
  const int next_;    // the next native where speeds are measured, else -1
  const int second_;  // the one behind it
  const int before_;  // the native from which the turn comes, else -1
  const bool has_guests_;
  Send send_;
  std::function<bool(int peer)> stays_here_;
  std::function<void(const Measured&)> on_done_;
  Measured measured_{};
  bool started_ = false, has_turn_ = false;
  bool measures_speed_ = false;  // of the peer, a native whose link leaves this machine
  std::size_t peer_ = 0;         // index of the one being probed
  std::size_t round_ = 0;        // of this peer
  std::uint32_t sent_ = 0, answered_ = 0;
  Instant round_began_{}, rows_began_{};
  std::int64_t single_ns_ = 0, row_ns_ = 0;  // the fastest round trips so far
};

/// Returns the higher cost of each kind of link.
wire::LinkCosts dearer(const wire::LinkCosts& one, const wire::LinkCosts& other);

/// What native ranks have measured, by rank: wire::Ready::next_byte_ps and wire::Ready::second_byte_ps.
struct MeasuredCosts {
  std::vector<std::uint64_t> next_byte_ps{}, second_byte_ps{};
};

/// Returns the speeds of native ranks: that of the fastest of a rank's links which were measured, its own and those of others to it,
/// relative to the middle one of all ranks', the faster of the two middle ones. Faster ranks, and those less than 1.5 times slower, count
/// as fast as that one. Others are rounded to powers of the square root of 2, so that noise changes nothing. The processor bounds links of
/// more than 4 Gbit/s, so these count alike. Empty if all are equal.
std::vector<std::uint32_t> speeds_of(const MeasuredCosts& measured);

/// The announcement of rank 0: the highest costs that the ranks have measured, the speeds that follow from what they have measured to
/// natives, and its own settings; a cost that no rank has measured is that of the settings. Costs are rounded to powers of two, so that a
/// little noise changes neither the algorithm of a call nor the bits of a sum.
wire::Begin placement_of(const wire::LinkCosts& dearest, const WorldOptions& own, const MeasuredCosts& measured = {});

/// Applies rank 0's announcement to this rank's world.
Status take_placement(const wire::Begin& announced, World& world);

}  // namespace ringlet
