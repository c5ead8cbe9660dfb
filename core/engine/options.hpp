#pragma once

#include <cstddef>

#include "core/base/time.hpp"
#include "core/engine/session.hpp"
#include "core/plan/placement.hpp"
#include "simd/kernels.hpp"

namespace ringlet {

/// A silent rank sends so many signs of life before its peers would count it as lost.
inline constexpr int kHeartbeatsPerTimeout = 4;

struct WorldOptions {
  int rank = 0;
  int size = 1;
  /// How many of the ranks cannot be dialled (browsers): the last ones, so rank 0 is never one.
  int guests = 0;
  const simd::Kernels* kernels = nullptr;  // not null; outlives the world
  Duration operation_timeout = Duration::seconds(600);
  Duration heartbeat_timeout = Duration::seconds(10);
  /// After how long an operation that still runs is worth a warning; 0: never.
  Duration warn_after = Duration::seconds(10);
  Duration close_timeout = Duration::seconds(2);
  std::size_t segment_bytes = 256 << 10;  // payload of one data frame; the world rounds it down to whole elements of any dtype
  /// What may be sent of one operation before its receiver is known to have started it, and of all such operations of a stream together.
  std::size_t eager_bytes = 64 << 10;
  std::size_t eager_window_bytes = 256 << 10;
  AlgorithmLimits limits{};
  Placement placement{};
  LeafLimits leaf_limits{};
  Topology topology{};              // filled in by the world and its groups: who of them is a guest
  std::size_t max_groups = 65'536;  // that a rank may be in at a time, the world among them
  SessionOptions session{};

  int natives() const { return size - guests; }
  bool is_guest(int of_rank) const { return of_rank >= natives(); }
  /// Whether the link between the two passes through relay_of(): guests cannot dial each other.
  bool is_relayed(int one, int other) const { return is_guest(one) && is_guest(other); }
  int relay_of(int one, int other) const { return (one + other) % natives(); }
};

}  // namespace ringlet
