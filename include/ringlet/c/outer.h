#pragma once

/** @file
 * Training with few averages, for slow networks: DiLoCo and Streaming DiLoCo (docs/library.md, "Fewer averages"). */

#include <ringlet/c/elastic.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of an outer trainer, the same on all ranks but for what `elastic` says of its own. */
typedef struct ringlet_outer_options {
  size_t struct_size;   /**< set by the function that fills in the defaults */
  int32_t inner_steps;  /**< steps that a rank takes alone between two averages of the same parameter; at least 1, 50 by default */
  int32_t fragments;    /**< in how many parts the parameters are averaged, one after the other; it divides `inner_steps`, 1 by default */
  int32_t overlap;      /**< inner steps that go on during an average, below `inner_steps` / `fragments`; 0 by default: a rank waits */
  int32_t by_speed;     /**< not 0: slower ranks take fewer inner steps, so that the others do not wait for them; 0 by default */
  double mixing;        /**< with `overlap`, what a rank keeps of its own parameters, from 0 to 1; 0.5 by default */
  double learning_rate; /**< of the outer optimizer; 0.7 by default */
  double momentum;      /**< of the outer optimizer, at least 0; 0.9 by default */
  int32_t nesterov;     /**< 1 or 0: whether that momentum is Nesterov's; 1 by default */
  void* context;        /**< given to both functions below */
  /** Returns the learning rate of the average that comes after `averages` others, and replaces `learning_rate`; NULL: nothing does. */
  double (*schedule)(void* context, uint64_t averages);
  /** Returns the seconds by which `by_speed` measures inner steps, and is called before and after each; NULL: those that pass. */
  double (*clock)(void* context);
  /** Of the loop, whose steps are the averages: so `checkpoint_every` counts these, and on_state gets their number. The communication type
   * of its `average` says how the differences cross the network. NULL: the defaults. */
  const ringlet_elastic_options* elastic;
} ringlet_outer_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_outer_options_init(ringlet_outer_options* options, size_t struct_size);

/** Trains with few averages. Each rank takes `inner_steps` steps alone, with an optimizer and samples of its own. Then the differences
 * between the shared parameters and each rank's are averaged, weighted by samples, and an outer SGD applies the average to the shared
 * parameters as if it were a gradient. All ranks go on from there, with the same bits. In an elastic group ranks come and go as a
 * ringlet_elastic_trainer says. */
typedef struct ringlet_outer_trainer ringlet_outer_trainer;
/** Makes a trainer. `parameters`, of f32 or f64, are borrowed until it is freed. Their values are those that training begins with; if the
 * ranks' values differ, rank 0's are taken. RINGLET_INVALID_ARGUMENT for another dtype and for options that do not fit. */
RINGLET_API int32_t ringlet_outer_trainer_create(ringlet_group* group, const ringlet_named_tensor* parameters, size_t count,
                                                 const ringlet_outer_options* options, ringlet_outer_trainer** trainer);
/** Frees the trainer. */
RINGLET_API void ringlet_outer_trainer_free(ringlet_outer_trainer* trainer);

/** One step that a rank takes alone. */
typedef struct ringlet_inner_step {
  uint64_t number; /**< counts the inner steps from 0, alike on all ranks; a slower rank leaves some numbers out */
  int32_t rank;    /**< of this rank among those that train now */
  int32_t ranks;   /**< how many train now */
} ringlet_inner_step;
/** The program's function for an inner step. It changes the parameters, sets `*samples`, which is 0 before, to how many samples it has
 * used, this rank's weight, and returns 0. If a call within it fails, it returns that call's code. It calls no collective. */
typedef int32_t (*ringlet_inner_function)(void* context, const ringlet_inner_step* step, double* samples);

/** Trains until `steps` inner steps, a multiple of `inner_steps` / `fragments`, are done. The last average of a run has all fragments, so
 * that afterwards the parameters are the shared ones, with the same bits on all ranks. RINGLET_INVALID_ARGUMENT where no rank has used a
 * sample; else it fails as ringlet_elastic_trainer_run does. */
RINGLET_API int32_t ringlet_outer_trainer_run(ringlet_outer_trainer* trainer, uint64_t steps, ringlet_inner_function inner, void* context);
/** Gets the shared parameters as of the last average, to be read. The elements are valid as long as the trainer, and change with its next
 * average; names and descriptions are valid until the next call of this function or ringlet_outer_trainer_fragment. */
RINGLET_API int32_t ringlet_outer_trainer_shared_parameters(ringlet_outer_trainer* trainer, const ringlet_named_tensor** tensors,
                                                            size_t* count);
/** Gets the parameters of the fragment with this number; names and descriptions are valid as those of the shared parameters. */
RINGLET_API int32_t ringlet_outer_trainer_fragment(ringlet_outer_trainer* trainer, int32_t index, const ringlet_named_tensor** tensors,
                                                   size_t* count);
/** Gets how many averages are done. */
RINGLET_API int32_t ringlet_outer_trainer_averages(const ringlet_outer_trainer* trainer, uint64_t* averages);
/** Gets how many inner steps are done, as ringlet_inner_step counts them. */
RINGLET_API int32_t ringlet_outer_trainer_steps(const ringlet_outer_trainer* trainer, uint64_t* steps);
/** Makes a handle of the group of all ranks that are left. */
RINGLET_API int32_t ringlet_outer_trainer_group(const ringlet_outer_trainer* trainer, ringlet_group** group);
/** Makes a handle of what is saved and handed over, with names of its own that begin with "outer_". Values may be set beside them before a
 * run, to compare them in on_state. */
RINGLET_API int32_t ringlet_outer_trainer_state(ringlet_outer_trainer* trainer, ringlet_checkpoint** state);

#ifdef __cplusplus
}
#endif
