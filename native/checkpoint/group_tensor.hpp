#pragma once

#include <ringlet/checkpoint.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::native {

/// A checkpoint's tensor as all ranks of the group see it: which rank holds which rows, and which one writes them.
struct GroupTensor {
  const Checkpoint::Entry* entry = nullptr;
  std::int64_t rows = 0;        // a scalar has one
  std::uint64_t row_bytes = 0;  // 0 only where the tensor has no elements
  std::uint64_t addends = 0;    // how many ranks' addends it consists of; 0 for other tensors

  RowRange held_by(int rank) const;
  /// The rows that a rank writes: those that it holds of a sharded tensor, or an even part of a tensor that all ranks hold.
  RowRange written_by(int rank, int ranks) const;
};

/// The tensor's name of an addend that Checkpoint::add_addends() has added as `kind`.
std::string addend_name(const std::string& kind, const std::string& name);

/// Throws `InvalidArgument` for what is not UTF-8. `what` stands before the text.
void check_utf8(std::string_view what, const std::string& text);

std::vector<GroupTensor> group_tensors(const Checkpoint& checkpoint);

/// Throws `InvalidArgument` for what rank `rank` of `ranks` cannot save or load: shards that do not fit their layout, names that are not
/// UTF-8, no memory where there are elements.
void check(const Checkpoint& checkpoint, int rank, int ranks);

/// The properties that must be the same on all ranks, with one line per tensor.
std::string describe_tensors(const Checkpoint& checkpoint);
/// The same for the checkpoint's values, with one line per value.
std::string describe_values(const Checkpoint& checkpoint);

}  // namespace ringlet::native
