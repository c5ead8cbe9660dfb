#pragma once

#include <cstdint>
#include <ringlet/tree.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

/// A half-open range of rows (indexes of axis 0).
struct RowRange {
  std::int64_t begin = 0;  ///< the first row
  std::int64_t end = 0;    ///< one past the last row

  /// The number of rows.
  std::int64_t count() const noexcept { return end - begin; }
  /// Compares begin and end.
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// How the tensors of a tree are split over the ranks of a group, each along its axis 0: the parts follow each other in rank order, and
/// every row belongs to one rank. A scalar counts as one row. If the rows do not divide evenly, the first ranks have one more; with weights
/// (the machines' memory, for instance) each rank's share of the rows is proportional to its weight, to within one row. A layout is pure
/// arithmetic and the same on every rank. It is immutable, so any thread may use it.
class ShardLayout {
 public:
  /// Makes the layout of tensors with the names and shapes of `full`. `weights` is empty or has one weight per rank, finite, >= 0 and not
  /// all 0. Throws an `InvalidArgument` that names the invalid value.
  ShardLayout(const Tree& full, int ranks, std::span<const double> weights = {});

  /// The number of ranks over which the tensors are split.
  int ranks() const noexcept { return ranks_; }
  /// The shape of a whole tensor. This method and the next two throw `InvalidArgument` for a name that is not laid out.
  const Shape& full_shape(std::string_view name) const;
  /// The rows of a tensor that belong to a rank.
  RowRange rows(std::string_view name, int rank) const;
  /// The shape of a rank's part: `full_shape` with another extent of axis 0. For a scalar it is (1,) at its owner and (0,) elsewhere.
  Shape shard_shape(std::string_view name, int rank) const;

  /// Views of a rank's rows of full tensors. `full` has the names and shapes of the layout; its dtypes may be any.
  Tree shard(const Tree& full, int rank) const;
  /// The number of elements of all tensors' parts at a rank, 0 to ranks() - 1.
  std::size_t count(int rank) const;

 private:
  struct Entry {
    std::string name;
    Shape shape;
    std::vector<std::int64_t> bounds;  // rank r has the rows bounds[r] to bounds[r + 1]
  };
  const Entry& entry(std::string_view name) const;

  int ranks_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> positions_;
};

}  // namespace ringlet
