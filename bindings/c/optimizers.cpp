#include <ringlet/c/optimizers.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

namespace {

ringlet::Optimizer& optimizer_of(const ringlet_optimizer* optimizer) { return *value_of(optimizer, "optimizer"); }

}  // namespace

void ringlet_optimizer_free(ringlet_optimizer* optimizer) { delete optimizer; }

int32_t ringlet_optimizer_apply_gradients(ringlet_optimizer* optimizer, const ringlet_named_tensor* gradients, size_t gradient_count,
                                          const ringlet_named_tensor* parameters, size_t parameter_count) {
  return guarded(__func__, [&] {
    optimizer_of(optimizer).apply_gradients(tree_of(gradients, gradient_count, "gradients"),
                                            tree_of(parameters, parameter_count, "parameters"));
  });
}
int32_t ringlet_optimizer_init(ringlet_optimizer* optimizer, const ringlet_named_tensor* parameters, size_t count) {
  return guarded(__func__, [&] { optimizer_of(optimizer).init(tree_of(parameters, count, "parameters")); });
}
int32_t ringlet_optimizer_state(ringlet_optimizer* optimizer, const ringlet_named_tensor** tensors, size_t* count) {
  return guarded(__func__, [&] {
    auto& handle = *required(optimizer, "optimizer");
    handle.state = ExportedTree(handle.value->state());
    handle.state.give(tensors, count);
  });
}
int32_t ringlet_optimizer_step(const ringlet_optimizer* optimizer, uint64_t* step) {
  return guarded(__func__, [&] { *required(step, "step") = optimizer_of(optimizer).step(); });
}
int32_t ringlet_optimizer_set_step(ringlet_optimizer* optimizer, uint64_t step) {
  return guarded(__func__, [&] { optimizer_of(optimizer).set_step(step); });
}
int32_t ringlet_optimizer_learning_rate(const ringlet_optimizer* optimizer, double* learning_rate) {
  return guarded(__func__, [&] { *required(learning_rate, "learning_rate") = optimizer_of(optimizer).learning_rate(); });
}
int32_t ringlet_optimizer_set_learning_rate(ringlet_optimizer* optimizer, double learning_rate) {
  return guarded(__func__, [&] { optimizer_of(optimizer).set_learning_rate(learning_rate); });
}

int32_t ringlet_clip_grad_norm(const ringlet_named_tensor* gradients, size_t count, double max_norm, double* norm) {
  return guarded(__func__, [&] {
    const double before = ringlet::clip_grad_norm(tree_of(gradients, count, "gradients"), max_norm);
    if (norm != nullptr) *norm = before;
  });
}
