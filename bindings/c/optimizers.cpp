#include <ringlet/c/optimizers.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

namespace {

// Each optimizer's options in C and C++: `to_c` gives the C defaults from the C++ ones, `to_cpp` reads what the caller has set.

using ringlet::AdaDeltaOptions, ringlet::AdagradOptions, ringlet::AdamaxOptions, ringlet::AdamOptions, ringlet::AdamWOptions,
    ringlet::LionOptions, ringlet::RMSpropOptions, ringlet::SGDOptions;

std::optional<ringlet::DType> state_dtype(int32_t dtype) { return optional_dtype(dtype, "state_dtype"); }

ringlet_sgd_options to_c(const SGDOptions& o) {
  return {sizeof(ringlet_sgd_options), o.momentum, o.weight_decay, o.dampening, o.nesterov, RINGLET_NO_DTYPE};
}
SGDOptions to_cpp(const ringlet_sgd_options& o) {
  return {o.momentum, o.weight_decay, o.dampening, o.nesterov != 0, state_dtype(o.state_dtype)};
}

ringlet_rmsprop_options to_c(const RMSpropOptions& o) { return {sizeof(ringlet_rmsprop_options), o.alpha, o.eps, RINGLET_NO_DTYPE}; }
RMSpropOptions to_cpp(const ringlet_rmsprop_options& o) { return {o.alpha, o.eps, state_dtype(o.state_dtype)}; }

ringlet_adagrad_options to_c(const AdagradOptions& o) { return {sizeof(ringlet_adagrad_options), o.eps, RINGLET_NO_DTYPE}; }
AdagradOptions to_cpp(const ringlet_adagrad_options& o) { return {o.eps, state_dtype(o.state_dtype)}; }

ringlet_adadelta_options to_c(const AdaDeltaOptions& o) { return {sizeof(ringlet_adadelta_options), o.rho, o.eps, RINGLET_NO_DTYPE}; }
AdaDeltaOptions to_cpp(const ringlet_adadelta_options& o) { return {o.rho, o.eps, state_dtype(o.state_dtype)}; }

ringlet_adam_options to_c(const AdamOptions& o) {
  return {sizeof(ringlet_adam_options), {o.betas[0], o.betas[1]}, o.eps, o.bias_correction, RINGLET_NO_DTYPE};
}
AdamOptions to_cpp(const ringlet_adam_options& o) {
  return {{o.betas[0], o.betas[1]}, o.eps, o.bias_correction != 0, state_dtype(o.state_dtype)};
}

ringlet_adamw_options to_c(const AdamWOptions& o) {
  return {sizeof(ringlet_adamw_options), {o.betas[0], o.betas[1]}, o.eps, o.weight_decay, o.bias_correction, RINGLET_NO_DTYPE};
}
AdamWOptions to_cpp(const ringlet_adamw_options& o) {
  return {{o.betas[0], o.betas[1]}, o.eps, o.weight_decay, o.bias_correction != 0, state_dtype(o.state_dtype)};
}

ringlet_adamax_options to_c(const AdamaxOptions& o) {
  return {sizeof(ringlet_adamax_options), {o.betas[0], o.betas[1]}, o.eps, RINGLET_NO_DTYPE};
}
AdamaxOptions to_cpp(const ringlet_adamax_options& o) { return {{o.betas[0], o.betas[1]}, o.eps, state_dtype(o.state_dtype)}; }

ringlet_lion_options to_c(const LionOptions& o) {
  return {sizeof(ringlet_lion_options), {o.betas[0], o.betas[1]}, o.weight_decay, RINGLET_NO_DTYPE};
}
LionOptions to_cpp(const ringlet_lion_options& o) { return {{o.betas[0], o.betas[1]}, o.weight_decay, state_dtype(o.state_dtype)}; }

template <class Optimizer, class CppOptions, class Options>
int32_t create(const char* call, double learning_rate, const Options* options, ringlet_optimizer** optimizer) noexcept {
  return guarded(call, [&] {
    give(optimizer, "optimizer",
         [&] { return std::make_unique<Optimizer>(learning_rate, to_cpp(options_or(options, to_c(CppOptions{})))); });
  });
}

ringlet::Optimizer& optimizer_of(const ringlet_optimizer* optimizer) { return *value_of(optimizer, "optimizer"); }

}  // namespace

int32_t ringlet_sgd_options_init(ringlet_sgd_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(SGDOptions{}));
}
int32_t ringlet_rmsprop_options_init(ringlet_rmsprop_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(RMSpropOptions{}));
}
int32_t ringlet_adagrad_options_init(ringlet_adagrad_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(AdagradOptions{}));
}
int32_t ringlet_adadelta_options_init(ringlet_adadelta_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(AdaDeltaOptions{}));
}
int32_t ringlet_adam_options_init(ringlet_adam_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(AdamOptions{}));
}
int32_t ringlet_adamw_options_init(ringlet_adamw_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(AdamWOptions{}));
}
int32_t ringlet_adamax_options_init(ringlet_adamax_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(AdamaxOptions{}));
}
int32_t ringlet_lion_options_init(ringlet_lion_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(LionOptions{}));
}

int32_t ringlet_sgd_create(double learning_rate, const ringlet_sgd_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::SGD, SGDOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_rmsprop_create(double learning_rate, const ringlet_rmsprop_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::RMSprop, RMSpropOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_adagrad_create(double learning_rate, const ringlet_adagrad_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Adagrad, AdagradOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_adadelta_create(double learning_rate, const ringlet_adadelta_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::AdaDelta, AdaDeltaOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_adam_create(double learning_rate, const ringlet_adam_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Adam, AdamOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_adamw_create(double learning_rate, const ringlet_adamw_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::AdamW, AdamWOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_adamax_create(double learning_rate, const ringlet_adamax_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Adamax, AdamaxOptions>(__func__, learning_rate, options, optimizer);
}
int32_t ringlet_lion_create(double learning_rate, const ringlet_lion_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Lion, LionOptions>(__func__, learning_rate, options, optimizer);
}
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
