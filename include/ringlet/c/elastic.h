#pragma once

/** @file
 * A training loop whose ranks come and go (docs/elastic.md). */

#include <ringlet/c/checkpoint.h>
#include <ringlet/c/gradients.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a trainer says when its ranks have become others. It is valid until the function that is told has returned. */
typedef struct ringlet_membership_change {
  const ringlet_group* world; /**< of all who go on; the program does not free it */
  const int32_t* lost;        /**< ranks of the world before that are gone, ascending */
  size_t lost_count;          /**< number of lost ranks */
  int32_t joined;             /**< how many ranks, the last ones of `world`, are new */
  int32_t cause;              /**< of a loss: the code of the first one; else RINGLET_OK */
  int32_t cause_rank;         /**< the rank to blame, in the world before; -1: none is known */
  const char* cause_message;  /**< names the culprit; "" if nobody was lost */
  uint64_t step;              /**< how many steps are committed */
  int64_t pause_ns;           /**< nanoseconds for which this rank stood still, as MembershipChange::pause in C++ */
} ringlet_membership_change;

/** Options of a trainer. `average`, `checkpoint_every`, `keep` and whether `checkpoint` is set are the same on all ranks. */
typedef struct ringlet_elastic_options {
  size_t struct_size;                     /**< set by the function that fills in the defaults */
  const ringlet_average_options* average; /**< how gradients are averaged; its weight stays NULL, since the samples are the weights */
  int32_t min_ranks;                      /**< -1: RINGLET_MIN_RANKS, else 1; with fewer ranks they wait for others. The highest counts */
  int32_t rejoin;                         /**< 1 or 0: whether a rank that the others went on without joins them again; 1 by default */
  const char* checkpoint;                 /**< directory in which checkpoints are saved and looked for; NULL: none */
  uint64_t checkpoint_every;              /**< steps; 0: only after the last one */
  int32_t keep;                           /**< how many checkpoints are kept, at least 1; 2 by default */
  void* context;                          /**< given to both functions */
  /** Runs after ranks were lost or have joined, on all others; NULL: nothing. It may not call collectives. */
  void (*on_change)(void* context, const ringlet_membership_change* change);
  /** Runs on a rank whose state has been filled from a checkpoint or by other ranks, before the next step; NULL: nothing. What follows
   * from the state, such as an optimizer's step, is to be set anew. `state` is valid until it returns; the program does not free it. */
  void (*on_state)(void* context, const ringlet_checkpoint* state, uint64_t step);
  int64_t min_wait_ms; /**< how long they wait for `min_ranks`; then RINGLET_PEER_LOST. -1 is unset: RINGLET_MIN_WAIT_MS, else 10 min */
  /** Runs in each world that a trainer enters after its first one, on all ranks alike, before those that have joined get the state; NULL:
   * nothing. It may call collectives, by which these learn what they need before they can make a trainer: whoever has joined takes part
   * before it makes one. `world` is valid until it returns; the program does not free it. It returns 0, or the code of a call within it
   * that has failed: where that is an error of the world, it runs again in the next one. */
  int32_t (*on_world)(void* context, ringlet_group* world);
} ringlet_elastic_options;
/** Fills in the defaults; struct_size must be `sizeof *options`. */
RINGLET_API int32_t ringlet_elastic_options_init(ringlet_elastic_options* options, size_t struct_size);

/** A training loop of an elastic group. A step is committed on all ranks or on none; one that is not is done again by those who are left,
 * with the same batch, divided anew. In a group that is not elastic the first loss ends the run. */
typedef struct ringlet_elastic_trainer ringlet_elastic_trainer;
/** Makes a trainer. `state` has all that a step changes, parameters and optimizers' state, whole on every rank; the trainer copies the list
 * and the values, and borrows the tensors until it is freed. RINGLET_INVALID_ARGUMENT for a tensor that is sharded, and for
 * the names "average_residuals" and "shard_residuals", by which it saves residuals of its own. */
RINGLET_API int32_t ringlet_elastic_trainer_create(ringlet_group* group, const ringlet_checkpoint* state,
                                                   const ringlet_elastic_options* options, ringlet_elastic_trainer** trainer);
/** Frees the trainer. */
RINGLET_API void ringlet_elastic_trainer_free(ringlet_elastic_trainer* trainer);

/** One attempt at a training step on this rank. It is valid while the step function runs, on its thread only. */
typedef struct ringlet_step ringlet_step;
/** The program's step function. It may be called several times for one step; it ends with ringlet_step_commit, before which it changes
 * nothing that lasts, and returns 0. If a call within it fails, it returns that call's code: after a loss the step is then done again, and
 * after anything else the run fails with that error. */
typedef int32_t (*ringlet_step_function)(void* context, ringlet_step* step);
/** Changes the state, alike on all ranks. It returns 0, or any other value to make this rank fail with RINGLET_CALLBACK_FAILED. */
typedef int32_t (*ringlet_apply_function)(void* context);

/** Trains until `steps` steps are committed, with `batch` samples (at least 1) in each, of all ranks together. First the newest checkpoint
 * is loaded where there is one, and ranks whose state then differs get that of those that have done the most steps. RINGLET_MISMATCH if
 * the ranks' plans or tensors differ; a rank that has just joined a training that had begun gets it alone, and leaves. RINGLET_PEER_LOST
 * if the others have gone on without this rank and it cannot join them again, or fewer than `min_ranks` were there for `min_wait_ms`. */
RINGLET_API int32_t ringlet_elastic_trainer_run(ringlet_elastic_trainer* trainer, uint64_t steps, uint64_t batch,
                                                ringlet_step_function step, void* context);
/** Gets how many steps are committed. */
RINGLET_API int32_t ringlet_elastic_trainer_step(const ringlet_elastic_trainer* trainer, uint64_t* step);
/** Makes a handle of the group of all ranks that are left. */
RINGLET_API int32_t ringlet_elastic_trainer_group(const ringlet_elastic_trainer* trainer, ringlet_group** group);
/** Makes a handle of the trainer's state. Its values may be set within the function given to ringlet_step_commit, alike on all ranks: they
 * are saved and handed over with the tensors. */
RINGLET_API int32_t ringlet_elastic_trainer_state(ringlet_elastic_trainer* trainer, ringlet_checkpoint** state);

/** Gets the step's number, how many were committed before it, and this rank's part of its batch: `*count` samples from `*first` on. Each
 * may be NULL. */
RINGLET_API int32_t ringlet_step_samples(const ringlet_step* step, uint64_t* number, uint64_t* first, uint64_t* count);
/** Makes a handle of the group of all ranks of this attempt, for the step's own collectives. */
RINGLET_API int32_t ringlet_step_group(const ringlet_step* step, ringlet_group** group);
/** Adds a gradient, averaged over this rank's own samples; all ranks add them in the same order. Its elements are borrowed until
 * ringlet_step_average has returned. A rank whose part of the batch is empty adds tensors with any contents. */
RINGLET_API int32_t ringlet_step_add(ringlet_step* step, const ringlet_tensor* gradient);
/** Waits until every added gradient holds its average over the samples of the whole batch. */
RINGLET_API int32_t ringlet_step_average(ringlet_step* step);
/** Adds all gradients and averages them. Names, dtypes and shapes are compared between the ranks at their first use. */
RINGLET_API int32_t ringlet_step_average_gradients(ringlet_step* step, const ringlet_named_tensor* gradients, size_t count);
/** Runs `apply` on all ranks or on none; the last call of a step. It costs one small collective. */
RINGLET_API int32_t ringlet_step_commit(ringlet_step* step, ringlet_apply_function apply, void* context);

#ifdef __cplusplus
}
#endif
