#pragma once

#include <cstddef>
#include <cstdint>

/** @file
 * The trainer without a group: one rank's part of a run for whoever must never wait, such as a page's Worker. The wasm module `train_text`
 * gives these functions to JavaScript as `Module._train_text_...`, beside Ringlet's own (wasm/cpp/exports.hpp). The caller owns the group
 * and does what the trainer says, until nothing is left:
 *
 *   trainer = train_text_create(rank, ranks)
 *   for (;;) switch (train_text_next(trainer)) {
 *     TRAIN_TEXT_COMPUTE:    train_text_compute(trainer, samples); then let the thread answer others
 *     TRAIN_TEXT_BROADCAST, TRAIN_TEXT_ALL_SUM, TRAIN_TEXT_ALL_GATHER:
 *                            the collective that train_text_exchange describes; then train_text_done
 *     TRAIN_TEXT_AVERAGE:    the average that train_text_average describes (average_gradients of a tree); then train_text_done
 *     TRAIN_TEXT_END, TRAIN_TEXT_FAILED: leave the loop
 *   }
 *
 * The order is that of course.hpp, which native ranks follow, too. What it says to do next changes only in compute and done; asking again
 * gives the same answer. Pointers are into the module's memory, which may grow in any call; they hold until the next compute or done.
 * Texts end with a zero. One thread; any number of trainers. Nothing throws. */

#define TRAIN_TEXT_EXPORT extern "C" __attribute__((used, visibility("default")))

struct TrainText;

enum TrainTextNext : std::int32_t {
  TRAIN_TEXT_END = 0,
  TRAIN_TEXT_COMPUTE = 1,
  TRAIN_TEXT_BROADCAST = 2,
  TRAIN_TEXT_ALL_SUM = 3,
  TRAIN_TEXT_ALL_GATHER = 4,
  TRAIN_TEXT_AVERAGE = 5,
  TRAIN_TEXT_FAILED = 6,
};

/// Of a broadcast, from rank 0: `output` alone counts. Of a sum: the input may be the output. Of a gather: every rank's input is one behind
/// the other in the output. Counts are elements.
struct TrainTextExchange {
  const void* input;
  std::size_t input_count;
  void* output;
  std::size_t output_count;
  std::uint32_t dtype;  // ringlet::DType, which is also exports.hpp's
  std::uint32_t stream;
};

/// The gradients of this rank's share, f32, as leaves of a tree that is the same on every rank. They are averaged in place.
struct TrainTextAverage {
  const char* const* names;
  float* const* values;
  const std::size_t* counts;
  std::size_t leaves;
  std::int32_t communication_dtype;  // ringlet::DType; -1: as they are
  std::uint32_t stream;
  double all_reduce_size;  // bytes, as AverageOptions
  double weight;           // this rank's; negative: none has one
};

/// Where each number stands in what train_text_numbers gives.
enum TrainTextNumber : std::int32_t {
  TRAIN_TEXT_RANKS,
  TRAIN_TEXT_STEP,             ///< how many steps are done
  TRAIN_TEXT_STEPS,            ///< how many there will be
  TRAIN_TEXT_LOSS,             ///< of the whole batch in the last step, nats per byte
  TRAIN_TEXT_VALIDATIONS,      ///< how often the held-out text was evaluated so far
  TRAIN_TEXT_VALIDATION_LOSS,  ///< the last time
  TRAIN_TEXT_BATCH,            ///< sequences of a step
  TRAIN_TEXT_SHARE,            ///< of them, this rank's in the step under way
  TRAIN_TEXT_CONTEXT,          ///< bytes of a sequence: tokens
  TRAIN_TEXT_PARAMETERS,
  TRAIN_TEXT_TEXT_BYTES,          ///< of the text to learn
  TRAIN_TEXT_TOKENS,              ///< that this rank has trained on
  TRAIN_TEXT_SECONDS,             ///< that all steps took, and the waiting in them
  TRAIN_TEXT_WAITING_SHARE,       ///< which part of these this rank waited for the others
  TRAIN_TEXT_SECONDS_PER_SAMPLE,  ///< of this rank's computing; 0: not known yet
  TRAIN_TEXT_CHECKED_STEP,        ///< how many steps were done when all ranks' parameters were last equal; negative: never compared
  TRAIN_TEXT_NUMBERS
};

/// A trainer that has not begun; `ranks` is the size of the group in which it will be `rank`, not 0: that one is native.
TRAIN_TEXT_EXPORT TrainText* train_text_create(std::int32_t rank, std::int32_t ranks);
TRAIN_TEXT_EXPORT void train_text_destroy(TrainText* trainer);

/// A TrainTextNext.
TRAIN_TEXT_EXPORT std::int32_t train_text_next(const TrainText* trainer);
/// Computes at most `samples` sequences, at least one; 0 where more of the same is left, else 1.
TRAIN_TEXT_EXPORT std::int32_t train_text_compute(TrainText* trainer, std::int32_t samples);
/// Null where it is not what comes next.
///@{
TRAIN_TEXT_EXPORT const TrainTextExchange* train_text_exchange(TrainText* trainer);
TRAIN_TEXT_EXPORT const TrainTextAverage* train_text_average(TrainText* trainer);
///@}
/// The collective is done: takes in what it brought.
TRAIN_TEXT_EXPORT void train_text_done(TrainText* trainer);
/// After TRAIN_TEXT_FAILED: why training cannot go on, one sentence for people; "" otherwise.
TRAIN_TEXT_EXPORT const char* train_text_problem(const TrainText* trainer);

/// TRAIN_TEXT_NUMBERS doubles. What is not known yet is 0.
TRAIN_TEXT_EXPORT const double* train_text_numbers(TrainText* trainer);
/// How many sequences each rank takes in the step under way: one int32 per rank. Null before the settings have come.
TRAIN_TEXT_EXPORT const std::int32_t* train_text_counts(const TrainText* trainer);
/// The hash of this rank's parameters when they were last compared: 16 hexadecimal digits; "" before.
TRAIN_TEXT_EXPORT const char* train_text_hash(TrainText* trainer);

/// Lets the model, as it is now, write `bytes` more bytes behind what it has written since train_text_write_anew. Between any two calls
/// once the parameters are there; before that it writes nothing. A byte costs about as much as a third of a sample. Returns how many bytes
/// there are now.
TRAIN_TEXT_EXPORT std::size_t train_text_write(TrainText* trainer, std::int32_t bytes);
TRAIN_TEXT_EXPORT void train_text_write_anew(TrainText* trainer);
/// The text: bytes that need not be UTF-8, without a zero at the end.
TRAIN_TEXT_EXPORT const std::uint8_t* train_text_written(const TrainText* trainer);
