#pragma once

/* Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables". */

/** @file
 * The options of each optimizer, and the functions that make optimizers. Formulas and bounds are given in optimizers.hpp. */

#include <ringlet/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An optimizer, which changes parameters by their gradients. */
typedef struct ringlet_optimizer ringlet_optimizer;

/** Options of ringlet_sgd_create. */
typedef struct ringlet_sgd_options {
  size_t struct_size;  /**< set by the function that fills in the defaults */
  double momentum;     /**< 0 */
  double weight_decay; /**< 0 */
  double dampening;    /**< 0 */
  int32_t nesterov;    /**< 0; needs momentum, and no dampening */
  int32_t state_dtype; /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_sgd_options;

/** Options of ringlet_rmsprop_create. */
typedef struct ringlet_rmsprop_options {
  size_t struct_size;  /**< set by the function that fills in the defaults */
  double alpha;        /**< 0.99 */
  double eps;          /**< 1e-8 */
  int32_t state_dtype; /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_rmsprop_options;

/** Options of ringlet_adagrad_create. */
typedef struct ringlet_adagrad_options {
  size_t struct_size;  /**< set by the function that fills in the defaults */
  double eps;          /**< 1e-8 */
  int32_t state_dtype; /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_adagrad_options;

/** Options of ringlet_adadelta_create. */
typedef struct ringlet_adadelta_options {
  size_t struct_size;  /**< set by the function that fills in the defaults */
  double rho;          /**< 0.9 */
  double eps;          /**< 1e-6 */
  int32_t state_dtype; /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_adadelta_options;

/** Options of ringlet_adam_create. */
typedef struct ringlet_adam_options {
  size_t struct_size;      /**< set by the function that fills in the defaults */
  double betas[2];         /**< 0.9, 0.999 */
  double eps;              /**< 1e-8 */
  int32_t bias_correction; /**< 0; PyTorch always corrects */
  int32_t state_dtype;     /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_adam_options;

/** Options of ringlet_adamw_create. */
typedef struct ringlet_adamw_options {
  size_t struct_size;      /**< set by the function that fills in the defaults */
  double betas[2];         /**< 0.9, 0.999 */
  double eps;              /**< 1e-8 */
  double weight_decay;     /**< 0.01 */
  int32_t bias_correction; /**< 0; PyTorch always corrects */
  int32_t state_dtype;     /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_adamw_options;

/** Options of ringlet_adamax_create. */
typedef struct ringlet_adamax_options {
  size_t struct_size;  /**< set by the function that fills in the defaults */
  double betas[2];     /**< 0.9, 0.999 */
  double eps;          /**< 1e-8 */
  int32_t state_dtype; /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_adamax_options;

/** Options of ringlet_lion_create. */
typedef struct ringlet_lion_options {
  size_t struct_size;  /**< set by the function that fills in the defaults */
  double betas[2];     /**< 0.9, 0.99 */
  double weight_decay; /**< 0 */
  int32_t state_dtype; /**< RINGLET_NO_DTYPE: the gradient's own */
} ringlet_lion_options;

/** Each fills in the defaults; struct_size must be `sizeof *options`. */
/** @{ */
RINGLET_API int32_t ringlet_sgd_options_init(ringlet_sgd_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_rmsprop_options_init(ringlet_rmsprop_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_adagrad_options_init(ringlet_adagrad_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_adadelta_options_init(ringlet_adadelta_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_adam_options_init(ringlet_adam_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_adamw_options_init(ringlet_adamw_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_adamax_options_init(ringlet_adamax_options* options, size_t struct_size);
RINGLET_API int32_t ringlet_lion_options_init(ringlet_lion_options* options, size_t struct_size);
/** @} */

/** Each makes an optimizer; RINGLET_INVALID_ARGUMENT if an option is out of its bounds. */
/** @{ */
RINGLET_API int32_t ringlet_sgd_create(double learning_rate, const ringlet_sgd_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_rmsprop_create(double learning_rate, const ringlet_rmsprop_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_adagrad_create(double learning_rate, const ringlet_adagrad_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_adadelta_create(double learning_rate, const ringlet_adadelta_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_adam_create(double learning_rate, const ringlet_adam_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_adamw_create(double learning_rate, const ringlet_adamw_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_adamax_create(double learning_rate, const ringlet_adamax_options* options, ringlet_optimizer** optimizer);
RINGLET_API int32_t ringlet_lion_create(double learning_rate, const ringlet_lion_options* options, ringlet_optimizer** optimizer);
/** @} */

#ifdef __cplusplus
}
#endif
