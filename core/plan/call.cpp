#include "core/plan/call.hpp"

#include <algorithm>
#include <cstdio>
#include <span>

namespace ringlet {

namespace {

constexpr std::size_t kDescribedParts = 16;

std::string rows_text(std::span<const std::uint64_t> counts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(counts.size(), kDescribedParts); ++i) text += (i == 0 ? "" : "+") + std::to_string(counts[i]);
  if (counts.size() > kDescribedParts) text += "+... (" + std::to_string(counts.size()) + " parts)";
  return text;
}

std::string shape_text(const Call& call) {
  const std::string dtype = call.blocks ? std::string(name_of(*call.blocks)) + " blocks" : std::string(name_of(call.dtype));
  const std::string of_width = call.row_elements == 1 ? "" : " x " + std::to_string(call.row_elements);
  if (call.counts.empty()) return dtype + " x " + std::to_string(call.rows) + of_width;
  if (!is_pairwise(call)) return dtype + ", rows " + rows_text(call.counts) + of_width;
  const std::span<const std::uint64_t> counts = call.counts;
  const std::size_t ranks = counts.size() / 2;
  return dtype + ", sends rows " + rows_text(counts.first(ranks)) + of_width + ", receives rows " + rows_text(counts.last(ranks)) +
         of_width;
}

bool is_for(Purpose purpose, const Call& one, const Call& other) { return one.purpose == purpose || other.purpose == purpose; }

}  // namespace

std::optional<CollectiveKind> find_collective(std::string_view name) noexcept {
  if (name.ends_with("_v")) name.remove_suffix(2);
  for (const CollectiveFacts& facts : kCollectives)
    if (name_of(facts.kind) == name) return facts.kind;
  return std::nullopt;
}

Call between(const Call& call, int peer) {
  if (!is_pairwise(call)) return call;
  Call pair = call;
  const auto p = static_cast<std::size_t>(peer);
  pair.counts = {call.counts[p], call.counts[call.counts.size() / 2 + p]};
  return pair;
}

bool agree(const Call& ours, const Call& theirs, int peer) {
  if (!is_pairwise(ours) || !is_pairwise(theirs)) return ours == theirs;
  Call mirrored = between(ours, peer);
  std::swap(mirrored.counts[0], mirrored.counts[1]);
  return mirrored == theirs;
}

std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  if (call.kind == CollectiveKind::barrier) return text;
  text += call.counts.empty() ? "(" : "_v(";
  if (reduces(call.kind)) text += std::string(name_of(call.op)) + ", ";
  text += shape_text(call);
  if (call.divisor != 1.0) {
    char divisor[32];
    std::snprintf(divisor, sizeof divisor, "%.17g", call.divisor);
    text += std::string(", divided by ") + divisor;
  }
  if (has_part_before(call)) text += ", without the parts of the ranks before";
  if (traits_of(call.kind).has_root) text += ", root " + std::to_string(call.root);
  text += ", " + std::string(name_of(call.algorithm)) + ")";
  return call.purpose == Purpose::program ? text : text + " for " + std::string(text_of(call.purpose));
}

std::string describe_difference(const Call& one, const Call& other) {
  if (one.purpose != other.purpose && is_for(Purpose::weights, one, other) && is_for(Purpose::gradients, one, other))
    return "; of averages, either every rank gives a weight or none does";
  // The ranks compare a tree once, and then reduce.
  if (one.purpose != other.purpose && is_for(Purpose::tree, one, other) && (reduces(one.kind) || reduces(other.kind)))
    return "; where both were given a tree of tensors, only one of them has been given other tensors than before";
  if (one.kind != other.kind || one.counts.size() != other.counts.size() || one.counts.size() <= kDescribedParts) return {};
  const auto [a, b] = std::mismatch(one.counts.begin(), one.counts.end(), other.counts.begin());
  if (a == one.counts.end()) return {};
  return "; the parts of rank " + std::to_string(a - one.counts.begin()) + " differ: " + std::to_string(*a) + " and " + std::to_string(*b) +
         " rows";
}

Algorithm choose_algorithm(CollectiveKind kind, std::size_t bytes, int size, const AlgorithmLimits& limits) {
  const AlgorithmSet algorithms = facts_of(kind).algorithms;
  const auto peers = static_cast<std::size_t>(size > 1 ? size - 1 : 1);
  if (algorithms.has(Algorithm::exchange) && (bytes <= limits.exchange_bytes / peers || !algorithms.has(Algorithm::direct)))
    return size >= 4 ? Algorithm::doubling : Algorithm::exchange;
  return bytes <= limits.direct_bytes || !algorithms.has(Algorithm::ring) ? Algorithm::direct : Algorithm::ring;
}

}  // namespace ringlet
