#pragma once

#include <ringlet/c/base.h>

#include <ringlet/tree.hpp>
#include <vector>

namespace ringlet::c {

/// A tree in the form that C sees: it owns the array of descriptions and the names and shapes that they point to, but no elements.
class ExportedTree {
 public:
  ExportedTree() = default;
  explicit ExportedTree(Tree tree);
  ExportedTree(ExportedTree&&) noexcept = default;
  ExportedTree& operator=(ExportedTree&&) noexcept = default;

  /// Writes the array's address and length, which are valid as long as this object. Throws `BadArgument` if a pointer is NULL.
  void give(const ringlet_named_tensor** tensors, size_t* count) const;
  const std::vector<ringlet_named_tensor>& tensors() const noexcept { return tensors_; }

 private:
  Tree tree_;  // owns the names
  std::vector<int64_t> numbers_;
  std::vector<ringlet_named_tensor> tensors_;
};

}  // namespace ringlet::c
