#pragma once

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

// Building blocks of the functions that call a group's collectives and messages.
namespace ringlet::c {

/// The body of a C function that waits for its operation.
template <class Call>
int32_t run(const char* name, ringlet_group* group, Call call) noexcept {
  return guarded(name, [&] { call(value_of(group, "group")); });
}

/// The body of a C function that starts an operation and gives its work.
template <class Call>
int32_t start(const char* name, ringlet_group* group, ringlet_work** work, Call call) noexcept {
  return guarded(name, [&] { give(work, "work", [&] { return call(value_of(group, "group")); }); });
}

inline std::span<const int64_t> per_rank(const ringlet_group* group, const int64_t* counts, const char* name) {
  return array_of(counts, static_cast<size_t>(group->value.size()), name);
}

inline bool is_root(int32_t root, const ringlet_group* group) { return group->value.rank() == root; }

/// The view of a tensor that only the root uses; on other ranks it is not looked at and may be anything.
inline TensorView output_at(int32_t root, const ringlet_group* group, const ringlet_tensor* output) {
  return is_root(root, group) ? written_view(output, "output") : TensorView();
}
inline ConstTensorView input_at(int32_t root, const ringlet_group* group, const ringlet_tensor* input) {
  return is_root(root, group) ? read_view(input, "input") : ConstTensorView();
}

}  // namespace ringlet::c
