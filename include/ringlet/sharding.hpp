#pragma once

#include <cstdint>
#include <ringlet/tree.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

/// Rows of axis 0, half-open.
struct RowRange {
  std::int64_t begin = 0;  ///< the first row
  std::int64_t end = 0;    ///< one behind the last

  /// Number of rows.
  std::int64_t count() const noexcept { return end - begin; }
  /// Same begin, same end.
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// How the tensors of a tree are split over the ranks of a group, each along its axis 0: rank after rank, every row at one rank. A scalar
/// counts as one row. Where rows do not divide, the first ranks have one more; with weights (a machine's memory, say) each rank's share
/// of the rows is its weight's, to within one row. Pure arithmetic, the same on every rank. Immutable, so any thread.
class ShardLayout {
 public:
  /// Of the names and shapes of `full`. `weights`: none, or one per rank, finite, >= 0, not all 0. Throws `InvalidArgument` with the value
  /// that does not fit.
  ShardLayout(const Tree& full, int ranks, std::span<const double> weights = {});

  /// Over how many ranks it is laid out.
  int ranks() const noexcept { return ranks_; }
  /// Of the tensor as a whole. This and the next throw `InvalidArgument` for a name that is not laid out.
  const Shape& full_shape(std::string_view name) const;
  /// The rows of a tensor that a rank has.
  RowRange rows(std::string_view name, int rank) const;
  /// The shape of a rank's part: `full_shape` with another extent of axis 0. A scalar's is (1,) at its owner, (0,) elsewhere.
  Shape shard_shape(std::string_view name, int rank) const;

  /// Views of a rank's rows of full tensors. `full` has the names and shapes of the layout; dtypes are its own.
  Tree shard(const Tree& full, int rank) const;
  /// Elements of all tensors' parts at a rank, 0 to ranks() - 1.
  std::size_t count(int rank) const;

 private:
  struct Entry {
    std::string name;
    Shape shape;
    std::vector<std::int64_t> bounds;  // of ranks; one more than there are
  };
  const Entry& entry(std::string_view name) const;

  int ranks_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> positions_;
};

}  // namespace ringlet
