#pragma once

#include <cstdint>
#include <optional>
#include <ringlet/sharding.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ringlet {

/// Which ranks hold the shards of a ShardLayout. Shard r is rank r's own, its first holder; with two copies another rank is the second
/// holder, on another machine where no machine has more than half of the ranks. A value, and pure arithmetic, the same on every rank.
class RowSpread {
 public:
  /// `weights` are the ranks' shares of the rows, of which one at least is positive; a rank of weight 0 holds none. `machines` has a number
  /// for each rank, the same for ranks of one machine. `copies` is 1 or 2; a rank alone is the only holder of its rows.
  RowSpread(std::vector<double> weights, std::vector<int> machines, int copies);

  int ranks() const { return static_cast<int>(weights_.size()); }
  /// How many places a rank has for shards: in place 0 is its own one, in place 1 the one whose second holder it is.
  int copies() const { return copies_; }
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<int>& machines() const { return machines_; }
  /// The rank that has the shard in this place; -1 where nobody has.
  int holder(int shard, int place) const;
  /// The shard that a rank has in this place; -1 where it has none.
  int shard_at(int rank, int place) const;
  /// The same with first holders only.
  RowSpread first_holders() const;

  /// The weights of the layout; empty where all are equal, as ShardLayout has it for even shares.
  std::vector<double> uneven_weights() const;
  ShardLayout layout(const Tree& full) const { return {full, ranks(), uneven_weights()}; }

  friend bool operator==(const RowSpread&, const RowSpread&) = default;

 private:
  std::vector<double> weights_;
  std::vector<int> machines_;
  std::vector<int> seconds_;  // of each shard, with two copies
  int copies_;
};

/// Rows that a rank needs in a new spread, and who has them: both as shards' places.
struct RowMove {
  std::size_t tensor = 0;  // its position in the tree
  RowRange rows;           // of the whole tensor
  int source = 0, source_place = 0;
  int target = 0, target_place = 0;
  friend bool operator==(const RowMove&, const RowMove&) = default;
};

/// Whose rows count.
enum class RowSource : std::uint8_t {
  own,    // all holders have the same bits: a rank takes its own rows if it has them
  first,  // they may differ: the first holder's count, or if it has gone the second one's
};

/// The moves from one spread to the next of the tensors of `full`, in the same order on all ranks. `missing` are the moves in `before` that
/// have not been made: second holders have not got these rows. `now[r]` is the number in `after` of the rank that is r in `before`, or -1
/// where that one has gone. Nothing, and `lost` says which rows, where all their holders have gone.
std::optional<std::vector<RowMove>> plan_row_moves(const Tree& full, const RowSpread& before, std::span<const RowMove> missing,
                                                   std::span<const int> now, const RowSpread& after, RowSource preferred,
                                                   std::string& lost);

/// Takes from `waiting`, in its order, moves by which no rank sends or receives more than `bytes`; one row always, so that an end comes.
/// `row_bytes` are those of one row of each tensor.
std::vector<RowMove> take_row_moves(std::vector<RowMove>& waiting, std::span<const std::size_t> row_bytes, int ranks, std::size_t bytes);

/// Some rows of a shard.
struct ShardRows {
  RowRange rows;
  bool at_second;  // whether the second holder has them
};
/// Divides rows of a shard by whether its second holder has them. `missing` are moves to second holders that have not been made.
std::vector<ShardRows> divide_rows(std::span<const RowMove> missing, std::size_t tensor, int second, RowRange rows);

}  // namespace ringlet
