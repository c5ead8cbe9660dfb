#include "core/plan/call.hpp"

#include <array>
#include <cstdio>

namespace ringlet {

std::string_view name_of(CollectiveKind kind) noexcept {
  constexpr std::array<std::string_view, kCollectiveKindCount> kNames{"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, kAlgorithmCount> kNames{"exchange", "direct", "ring"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  if (call.kind == CollectiveKind::barrier) return text;
  text += "(";
  if (call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::reduce_scatter) text += std::string(name_of(call.op)) + ", ";
  text += std::string(name_of(call.dtype)) + " x " + std::to_string(call.rows);
  if (call.row_elements != 1) text += " x " + std::to_string(call.row_elements);
  if (call.divisor != 1.0) {
    char divisor[32];
    std::snprintf(divisor, sizeof divisor, "%.17g", call.divisor);
    text += std::string(", divided by ") + divisor;
  }
  if (call.kind == CollectiveKind::broadcast) text += ", root " + std::to_string(call.root);
  return text + ", " + std::string(name_of(call.algorithm)) + ")";
}

Algorithm choose_algorithm(CollectiveKind kind, std::size_t bytes, int size, const AlgorithmLimits& limits) {
  if (kind == CollectiveKind::barrier) return Algorithm::exchange;
  const auto peers = static_cast<std::size_t>(size > 1 ? size - 1 : 1);
  if (kind == CollectiveKind::all_reduce && bytes <= limits.exchange_bytes / peers) return Algorithm::exchange;
  return bytes <= limits.direct_bytes ? Algorithm::direct : Algorithm::ring;
}

}  // namespace ringlet
