#pragma once

#include <cstddef>
#include <cstdint>
#include <ringlet/dtype.hpp>
#include <string>
#include <string_view>

namespace ringlet {

/// The collectives. The numbers are part of the wire format: append only.
enum class CollectiveKind : std::uint8_t { all_reduce = 0, reduce_scatter = 1, all_gather = 2, broadcast = 3, barrier = 4 };
inline constexpr std::size_t kCollectiveKindCount = 5;

/// How a collective moves its bytes. Part of the wire format: append only.
enum class Algorithm : std::uint8_t {
  exchange = 0,  // everyone sends everything to everyone: one step
  direct = 1,    // to the owner of each part and back, or from the root to each: two steps or one
  ring = 2,      // along the ring (broadcast: a chain), pipelined
};
inline constexpr std::size_t kAlgorithmCount = 3;

std::string_view name_of(CollectiveKind kind) noexcept;
std::string_view name_of(Algorithm algorithm) noexcept;

/// What a rank calls: the fingerprint that all ranks must agree on. `rows` x `row_elements` is the shape with axis 0 apart from the rest.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  Algorithm algorithm = Algorithm::exchange;
  std::int32_t root = 0;   // of a broadcast
  std::uint64_t rows = 0;  // of the input
  std::uint64_t row_elements = 1;
  double divisor = 1.0;  // the owner divides by it, once

  std::size_t elements() const { return static_cast<std::size_t>(rows * row_elements); }
  std::size_t bytes() const { return elements() * size_of(dtype); }
  friend bool operator==(const Call&, const Call&) = default;
};

/// "all_reduce(sum, f32 x 1000)".
std::string describe(const Call& call);

/// Where the algorithms change, by bytes of the whole buffer. Part of a group's configuration: equal on all ranks.
struct AlgorithmLimits {
  std::size_t exchange_bytes = 32 << 10;  // up to here, divided by the number of peers beyond two ranks
  std::size_t direct_bytes = 256 << 10;
};

/// The algorithm of a call: a pure function, so that it is the same on every rank and does not change from run to run.
Algorithm choose_algorithm(CollectiveKind kind, std::size_t bytes, int size, const AlgorithmLimits& limits);

}  // namespace ringlet
