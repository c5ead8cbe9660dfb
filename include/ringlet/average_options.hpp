#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/dtype.hpp>
#include <ringlet/stream.hpp>

namespace ringlet {

/// How gradients are averaged.
struct AverageOptions {
  /// Bytes of gradients that are moved together; <= 0: each tensor by itself. MLX's name and default.
  std::int64_t all_reduce_size = 32 << 20;
  /// Bytes of the first bucket of a step, where smaller: so that the network is not idle while the first full bucket is still filling.
  std::optional<std::int64_t> first_bucket_size{};
  /// The dtype that crosses the network: f16 or bf16; unset: each tensor's own.
  std::optional<DType> communication_type{};
  /// This rank's share of the average, such as its number of samples: the result is sum(weight * gradient) / sum(weight).
  /// Unset on all ranks: the plain mean. Finite, >= 0, and > 0 on at least one rank; set on all ranks or on none.
  std::optional<double> weight{};
  Stream stream{};  ///< of all its collectives
};

}  // namespace ringlet
