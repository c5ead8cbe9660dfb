#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/stream.hpp>
#include <ringlet/wire.hpp>

namespace ringlet {

/// The first block format's number where a number says a dtype or a block format: in C and in JavaScript.
inline constexpr std::int32_t kFirstBlockFormat = 256;

/// Options for averaging gradients.
struct AverageOptions {
  /// Bytes of gradients that one collective moves, in blocks 2 MiB at most; <= 0: each tensor by itself. Name and default are MLX's.
  std::int64_t all_reduce_size = 32 << 20;
  /// Bytes of the first bucket of a step, if that is smaller. A small one keeps the network from being idle while the first full bucket is
  /// filling.
  std::optional<std::int64_t> first_bucket_size{};
  /// How real tensors cross the network: DType::f16, DType::bf16, Wire::int8() or Wire::int4(), the same on all ranks. If it is unset, each
  /// tensor is sent in its own dtype.
  std::optional<Wire> communication_type{};
  /// This rank's share of the average, such as its number of samples: the result is sum(weight * gradient) / sum(weight). Ranks either all
  /// set it or all leave it unset, for the plain mean. It is finite, >= 0, and > 0 on at least one rank.
  std::optional<double> weight{};
  Stream stream{};  ///< the stream of all its collectives
};

}  // namespace ringlet
