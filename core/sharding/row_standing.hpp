#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/sharding/row_spread.hpp"

namespace ringlet {

/// Which rows the ranks of a world hold. All of them know the same, but for the rank.
struct RowHolding {
  RowSpread spread;
  int rank = 0;                  // of this process in that world
  std::vector<RowMove> missing;  // the moves to second holders that have not been made
  std::int64_t generation = 0;   // how often rows were spread anew; -1: this rank has none
  bool is_fresh = true;          // not of a step that both holders have computed
};

/// What a rank tells the others of its rows when a world begins.
struct RowStanding {
  RowHolding holding;
  std::uint64_t step = 0;
  bool is_whole = false;  // full parameters are here, with the last step's values
  double weight = 1;      // of this rank in the world that begins
  int machine = 0;        // there: the lowest rank of its machine

  bool is_older_than(const RowStanding& other) const {
    return std::pair(holding.generation, step) < std::pair(other.holding.generation, other.step);
  }
  /// Bytes that ranks of the same build can parse.
  std::string text() const;
  /// Nothing where the text does not fit together, or names more tensors than that.
  static std::optional<RowStanding> parse(std::string_view text, std::size_t tensors);
};

}  // namespace ringlet
