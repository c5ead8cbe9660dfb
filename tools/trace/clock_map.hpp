#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringlet::trace {

/// The largest time of a trace, 31 years, so that sums of several fit.
inline constexpr std::int64_t kMaxTimeNs = 1'000'000'000'000'000'000;

/// When one clock showed `at_ns`, the other one showed `at_ns + offset_ns`, give or take `error_ns`.
struct Reading {
  std::int64_t at_ns = 0, offset_ns = 0, error_ns = 0;
};

/// A rank of a world.
struct Seat {
  std::string world;  // alike for all ranks of the world, and for no others; its epoch is a number beside it
  std::uint32_t epoch = 0;
  int rank = 0;
};

/// What a file says of its process' clock.
struct PartClock {
  std::string clock;  // processes on the same clock have the same text; empty: not known
  std::vector<Seat> seats;
  struct Compared {
    std::uint32_t epoch = 0;  // with rank 0 of its last seat's world in that epoch
    Reading reading;
  };
  std::vector<Compared> compared;
};

/// How the times of one part become those of the first part.
class ClockMap {
 public:
  /// Linear between two readings, which drift of the clocks asks for, and constant before the first and after the last one.
  std::int64_t to_common(std::int64_t own_ns) const;
  /// The sum of the largest errors on the way to the first part's clock.
  std::int64_t error_ns() const;

 private:
  friend std::vector<std::optional<ClockMap>> map_clocks(const std::vector<PartClock>& parts);
  std::vector<std::vector<Reading>> hops_;  // each sorted by its own clock
};

/// Maps the clocks of all parts to that of the first one, through as many others as it takes: a rank is compared with the rank 0 of each of
/// its worlds, which changes where that one is lost. Nothing for a part that no reading leads to.
std::vector<std::optional<ClockMap>> map_clocks(const std::vector<PartClock>& parts);

}  // namespace ringlet::trace
