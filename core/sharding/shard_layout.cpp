#include <algorithm>
#include <cmath>
#include <numeric>
#include <ringlet/error.hpp>
#include <ringlet/sharding.hpp>

#include "core/base/refuse.hpp"
#include "core/plan/part_layout.hpp"
#include "core/sharding/checks.hpp"
#include "core/sharding/rows.hpp"

namespace ringlet {

TensorView rows_of(const TensorView& tensor, RowRange rows) {
  std::vector<std::int64_t> extents(tensor.shape().extents().begin(), tensor.shape().extents().end());
  std::vector<std::int64_t> strides;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) strides.push_back(tensor.stride(axis));
  if (extents.empty()) {
    extents.push_back(1);
    strides.push_back(1);
  }
  extents[0] = rows.count();
  const std::int64_t first = rows.begin * strides[0] * static_cast<std::int64_t>(size_of(tensor.dtype()));
  return {tensor.data() + first, tensor.dtype(), Shape(std::span<const std::int64_t>(extents)), strides};
}

namespace {

std::vector<std::int64_t> even_bounds(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> bounds;
  for (int rank = 0; rank < ranks; ++rank)
    bounds.push_back(static_cast<std::int64_t>(rows_of(static_cast<std::size_t>(rows), ranks, rank).begin));
  bounds.push_back(rows);
  return bounds;
}

/// Each bound is the rounded share of all weights before it.
std::vector<std::int64_t> weighted_bounds(std::int64_t rows, std::span<const double> weights, double total) {
  std::vector<std::int64_t> bounds{0};
  double before = 0;
  for (const double weight : weights.first(weights.size() - 1)) {
    before += weight;
    bounds.push_back(std::min(rows, static_cast<std::int64_t>(std::llround(static_cast<double>(rows) * (before / total)))));
  }
  bounds.push_back(rows);
  return bounds;
}

}  // namespace

ShardLayout::ShardLayout(const Tree& full, int ranks, std::span<const double> weights) : ranks_(ranks) {
  if (ranks < 1) refuse("a layout over " + std::to_string(ranks) + " ranks; there must be at least one");
  throw_if_failed(check_shard_weights(weights, ranks));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const Leaf& leaf : full) {
    const Shape& shape = leaf.values.shape();
    const std::int64_t rows = shape.axes() == 0 ? 1 : shape[0];
    positions_.emplace(leaf.name, entries_.size());
    entries_.push_back({leaf.name, shape, weights.empty() ? even_bounds(rows, ranks) : weighted_bounds(rows, weights, total)});
  }
}

const ShardLayout::Entry& ShardLayout::entry(std::string_view name) const {
  const auto it = positions_.find(std::string(name));
  if (it == positions_.end()) refuse("the layout has no tensor '" + std::string(name) + "'");
  return entries_[it->second];
}

const Shape& ShardLayout::full_shape(std::string_view name) const { return entry(name).shape; }

RowRange ShardLayout::rows(std::string_view name, int rank) const {
  if (rank < 0 || rank >= ranks_) refuse("rank " + std::to_string(rank) + " of a layout over " + std::to_string(ranks_) + " ranks");
  const auto& bounds = entry(name).bounds;
  const auto r = static_cast<std::size_t>(rank);
  return {bounds[r], bounds[r + 1]};
}

Shape ShardLayout::shard_shape(std::string_view name, int rank) const {
  const auto whole = full_shape(name).extents();
  std::vector<std::int64_t> extents(whole.begin(), whole.end());
  if (extents.empty()) extents.push_back(1);
  extents[0] = rows(name, rank).count();
  return Shape(std::span<const std::int64_t>(extents));
}

Tree ShardLayout::shard(const Tree& full, int rank) const {
  return full.map([&](const std::string& name, const TensorView& values) -> TensorView {
    if (!(values.shape() == full_shape(name)))
      refuse("'" + name + "' is " + describe(values) + " where the layout has " + to_string(full_shape(name)));
    return rows_of(values, rows(name, rank));
  });
}

std::size_t ShardLayout::count(int rank) const {
  std::size_t sum = 0;
  for (const Entry& tensor : entries_) sum += shard_shape(tensor.name, rank).count();
  return sum;
}

}  // namespace ringlet
