#include "bindings/c/exported_tree.hpp"

#include "bindings/c/arguments.hpp"

namespace ringlet::c {

ExportedTree::ExportedTree(Tree tree) : tree_(std::move(tree)) {
  // Each axis has two numbers: its extent and its stride. Reserving keeps the numbers in place once a tensor points to them.
  numbers_.reserve(tree_.size() * 2 * Shape::kMaxAxes);
  tensors_.reserve(tree_.size());
  for (const auto& [name, values] : tree_) {
    const auto extents = values.shape().extents();
    const int64_t* shape = numbers_.data() + numbers_.size();
    numbers_.insert(numbers_.end(), extents.begin(), extents.end());
    const int64_t* strides = numbers_.data() + numbers_.size();
    for (size_t axis = 0; axis < extents.size(); ++axis) numbers_.push_back(values.stride(axis));
    tensors_.push_back({name.c_str(),
                        {values.data(), static_cast<int32_t>(values.dtype()), static_cast<int32_t>(extents.size()), shape,
                         values.contiguous() ? nullptr : strides}});
  }
}

void ExportedTree::give(const ringlet_named_tensor** tensors, size_t* count) const {
  required(tensors, "the place for the tensors");
  *required(count, "count") = tensors_.size();
  *tensors = tensors_.data();
}

}  // namespace ringlet::c
