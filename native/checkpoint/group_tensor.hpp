#pragma once

#include <ringlet/checkpoint.hpp>
#include <string>
#include <vector>

namespace ringlet::native {

/// A checkpoint's tensor as all ranks of the group see it: who holds which rows, and who writes them.
struct GroupTensor {
  const Checkpoint::Entry* entry = nullptr;
  std::int64_t rows = 0;        // a scalar is one
  std::uint64_t row_bytes = 0;  // 0 only where the tensor has no elements

  RowRange held_by(int rank) const;
  /// A rank's share of what is written: what it holds of a sharded tensor, an even part of one that all hold.
  RowRange written_by(int rank, int ranks) const;
};

std::vector<GroupTensor> group_tensors(const Checkpoint& checkpoint);

/// Throws `InvalidArgument` for what rank `rank` of `ranks` cannot save or load: shards that do not fit their layout, names that are not
/// UTF-8, no memory where there are elements.
void check(const Checkpoint& checkpoint, int rank, int ranks);

/// What must be the same on all ranks, one line per tensor.
std::string describe_tensors(const Checkpoint& checkpoint);
/// And per value.
std::string describe_values(const Checkpoint& checkpoint);

}  // namespace ringlet::native
