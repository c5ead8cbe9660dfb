#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/sharding/row_spread.hpp"

namespace ringlet::native {

/// What a rank tells the others when a world begins.
struct ToldRows {
  std::int64_t generation;
  std::uint64_t step;
  int rank;  // in the world of its rows
  bool is_whole, is_fresh;
  double weight;  // in this world
  int machine;
  RowSpread spread;
  std::vector<RowMove> missing;

  std::string text() const;
  /// Throws `MismatchError` for what does not fit together, or names more tensors than that.
  static ToldRows parse(const std::string& text, std::size_t tensors);
  bool is_older_than(const ToldRows& other) const { return std::pair(generation, step) < std::pair(other.generation, other.step); }
};

}  // namespace ringlet::native
