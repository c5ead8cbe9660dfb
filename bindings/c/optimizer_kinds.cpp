// Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables".
#include <ringlet/c/optimizer_kinds.h>

#include "bindings/c/arguments.hpp"
#include "bindings/c/handles.hpp"

using namespace ringlet::c;

namespace {

ringlet_sgd_options to_c(const ringlet::SGDOptions& from) {
  ringlet_sgd_options to{};
  to.struct_size = sizeof to;
  to.momentum = from.momentum;
  to.weight_decay = from.weight_decay;
  to.dampening = from.dampening;
  to.nesterov = from.nesterov;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::SGDOptions to_cpp(const ringlet_sgd_options& from) {
  ringlet::SGDOptions to;
  to.momentum = from.momentum;
  to.weight_decay = from.weight_decay;
  to.dampening = from.dampening;
  to.nesterov = from.nesterov != 0;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_rmsprop_options to_c(const ringlet::RMSpropOptions& from) {
  ringlet_rmsprop_options to{};
  to.struct_size = sizeof to;
  to.alpha = from.alpha;
  to.eps = from.eps;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::RMSpropOptions to_cpp(const ringlet_rmsprop_options& from) {
  ringlet::RMSpropOptions to;
  to.alpha = from.alpha;
  to.eps = from.eps;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_adagrad_options to_c(const ringlet::AdagradOptions& from) {
  ringlet_adagrad_options to{};
  to.struct_size = sizeof to;
  to.eps = from.eps;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::AdagradOptions to_cpp(const ringlet_adagrad_options& from) {
  ringlet::AdagradOptions to;
  to.eps = from.eps;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_adadelta_options to_c(const ringlet::AdaDeltaOptions& from) {
  ringlet_adadelta_options to{};
  to.struct_size = sizeof to;
  to.rho = from.rho;
  to.eps = from.eps;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::AdaDeltaOptions to_cpp(const ringlet_adadelta_options& from) {
  ringlet::AdaDeltaOptions to;
  to.rho = from.rho;
  to.eps = from.eps;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_adam_options to_c(const ringlet::AdamOptions& from) {
  ringlet_adam_options to{};
  to.struct_size = sizeof to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.eps = from.eps;
  to.bias_correction = from.bias_correction;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::AdamOptions to_cpp(const ringlet_adam_options& from) {
  ringlet::AdamOptions to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.eps = from.eps;
  to.bias_correction = from.bias_correction != 0;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_adamw_options to_c(const ringlet::AdamWOptions& from) {
  ringlet_adamw_options to{};
  to.struct_size = sizeof to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.eps = from.eps;
  to.weight_decay = from.weight_decay;
  to.bias_correction = from.bias_correction;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::AdamWOptions to_cpp(const ringlet_adamw_options& from) {
  ringlet::AdamWOptions to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.eps = from.eps;
  to.weight_decay = from.weight_decay;
  to.bias_correction = from.bias_correction != 0;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_adamax_options to_c(const ringlet::AdamaxOptions& from) {
  ringlet_adamax_options to{};
  to.struct_size = sizeof to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.eps = from.eps;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::AdamaxOptions to_cpp(const ringlet_adamax_options& from) {
  ringlet::AdamaxOptions to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.eps = from.eps;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

ringlet_lion_options to_c(const ringlet::LionOptions& from) {
  ringlet_lion_options to{};
  to.struct_size = sizeof to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.weight_decay = from.weight_decay;
  to.state_dtype = RINGLET_NO_DTYPE;
  return to;
}
ringlet::LionOptions to_cpp(const ringlet_lion_options& from) {
  ringlet::LionOptions to;
  to.betas[0] = from.betas[0];
  to.betas[1] = from.betas[1];
  to.weight_decay = from.weight_decay;
  to.state_dtype = optional_dtype(from.state_dtype, "state_dtype");
  return to;
}

template <class Optimizer, class CppOptions, class Options>
int32_t create(const char* call, double learning_rate, const Options* options, ringlet_optimizer** optimizer) noexcept {
  return guarded(call, [&] {
    give(optimizer, "optimizer",
         [&] { return std::make_unique<Optimizer>(learning_rate, to_cpp(options_or(options, to_c(CppOptions{})))); });
  });
}

}  // namespace

int32_t ringlet_sgd_options_init(ringlet_sgd_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::SGDOptions{}));
}
int32_t ringlet_sgd_create(double learning_rate, const ringlet_sgd_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::SGD, ringlet::SGDOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_rmsprop_options_init(ringlet_rmsprop_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::RMSpropOptions{}));
}
int32_t ringlet_rmsprop_create(double learning_rate, const ringlet_rmsprop_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::RMSprop, ringlet::RMSpropOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_adagrad_options_init(ringlet_adagrad_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::AdagradOptions{}));
}
int32_t ringlet_adagrad_create(double learning_rate, const ringlet_adagrad_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Adagrad, ringlet::AdagradOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_adadelta_options_init(ringlet_adadelta_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::AdaDeltaOptions{}));
}
int32_t ringlet_adadelta_create(double learning_rate, const ringlet_adadelta_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::AdaDelta, ringlet::AdaDeltaOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_adam_options_init(ringlet_adam_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::AdamOptions{}));
}
int32_t ringlet_adam_create(double learning_rate, const ringlet_adam_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Adam, ringlet::AdamOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_adamw_options_init(ringlet_adamw_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::AdamWOptions{}));
}
int32_t ringlet_adamw_create(double learning_rate, const ringlet_adamw_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::AdamW, ringlet::AdamWOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_adamax_options_init(ringlet_adamax_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::AdamaxOptions{}));
}
int32_t ringlet_adamax_create(double learning_rate, const ringlet_adamax_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Adamax, ringlet::AdamaxOptions>(__func__, learning_rate, options, optimizer);
}

int32_t ringlet_lion_options_init(ringlet_lion_options* options, size_t struct_size) {
  return init_options(__func__, options, struct_size, to_c(ringlet::LionOptions{}));
}
int32_t ringlet_lion_create(double learning_rate, const ringlet_lion_options* options, ringlet_optimizer** optimizer) {
  return create<ringlet::Lion, ringlet::LionOptions>(__func__, learning_rate, options, optimizer);
}
