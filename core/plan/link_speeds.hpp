#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan/topology.hpp"

namespace ringlet {

/// Returns how much slower each rank is than the middle one, the faster of the two middle ones, given what a byte costs it in picoseconds.
/// Faster ranks have 1, and so have those whose cost is not known (0). The processor bounds links of more than 4 Gbit/s, so these count
/// alike.
std::vector<double> slowness_of(std::span<const std::uint64_t> byte_ps);

/// A rank that is less than this many times slower than the middle one counts as equally fast.
inline constexpr double kEquallyFast = 1.5;

/// Returns what a byte costs each of `natives` ranks; 0: not known. `byte_ps` has the cost from rank i to rank j at i * natives + j, and
/// from rank i to all others together at i * natives + i. Each of these shows that a rank is at least so fast, so the least cost counts:
/// that of all links together, or of one. Of a link that was measured from both ends the slower direction counts, as in a round trip.
std::vector<std::uint64_t> costs_of_ranks(std::span<const std::uint64_t> byte_ps, int natives);

/// A native rank whose parts have to change, with the cost of a byte over the fastest of its links; 0: not known.
struct SpeedChange {
  int rank = 0;
  std::uint64_t before_ps = 0, now_ps = 0;

  friend bool operator==(const SpeedChange&, const SpeedChange&) = default;
};

/// The speeds by which native ranks divide buffers, and whether they still fit what the links carry while the ranks train. It is a function
/// of its inputs alone. A rank's speed changes once its slowness has differed from the one in use by at least kDiffers times in kInARow
/// windows, one after the other and in the same direction; of these the middle one counts. So a single busy moment changes nothing, nor
/// does noise of less than 15 % around any speed.
class SpeedRecord {
 public:
  static constexpr double kDiffers = 1.35;
  static constexpr int kInARow = 3;
  struct Proposal {
    std::vector<std::uint32_t> speeds{};  // of the native ranks
    std::vector<SpeedChange> changes{};   // of those that change
  };

  explicit SpeedRecord(std::vector<std::uint32_t> in_use);

  const std::vector<std::uint32_t>& in_use() const { return in_use_; }
  /// Adds what a byte has cost each rank in one window; 0: the rank has sent too little. Returns speeds that fit better, if there are any.
  std::optional<Proposal> add(std::span<const std::uint64_t> byte_ps);
  /// The ranks have agreed on these speeds.
  void take(const std::vector<std::uint32_t>& speeds);

 private:
  struct Window {
    double slowness = 1;
    std::uint64_t byte_ps = 0;
  };
  struct Rank {
    int windows = 0;                          // in a row that differ; negative: the rank is faster than its speed says
    std::uint64_t fitting = 0;                // the cost in the last window that did not differ
    std::array<Window, kInARow> differing{};  // the last windows in a row
    Window middle() const;
  };
  bool look(std::size_t rank, double slowness, std::uint64_t byte_ps);

  std::vector<std::uint32_t> in_use_;
  std::vector<Rank> ranks_;
};

/// Says why parts change, for people: "rank 2's links carry 83 Mbit/s, which were 333: it owns no part of an all-reduce now". `topology`
/// has the new speeds. Of many ranks only the first are named.
std::string describe_changes(std::span<const SpeedChange> changes, const Topology& topology);

}  // namespace ringlet
