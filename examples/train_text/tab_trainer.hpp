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
 *     TRAIN_TEXT_AGREE:      the group's vote, to which this rank says yes; then train_text_done, or leave the loop if the others do not
 *     TRAIN_TEXT_OUTER:      all inner steps by an OuterTrainer as train_text_outer describes; then train_text_done. It takes one by
 *                            train_text_begin_step, and then TRAIN_TEXT_COMPUTE until TRAIN_TEXT_OUTER comes again
 *     TRAIN_TEXT_END, TRAIN_TEXT_FAILED: leave the loop
 *   }
 *
 * The order is that of act_sequence.hpp, which native ranks follow, too; a rank that has joined a run first gets what the others have.
 * Where the group fails, the caller leaves the loop; once it has joined the group again, it begins with another trainer. What it says to do
 * next changes only in compute and done; asking again gives the same answer. Pointers are into the module's memory, which may grow in any
 * call; they hold until the next compute or done. Texts end with a zero. One thread; any number of trainers. Nothing throws. */

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
  TRAIN_TEXT_AGREE = 7,
  TRAIN_TEXT_OUTER = 8,
};

/// A collective to be carried out. A broadcast is from rank 0 and uses `output` alone. A sum may have the same memory as input and output.
/// A gather's output is the concatenation of every rank's input. Counts are elements.
struct TrainTextExchange {
  const void* input;
  std::size_t input_count;
  void* output;
  std::size_t output_count;
  std::uint32_t dtype;  // ringlet::DType, as in exports.hpp
  std::uint32_t stream;
};

/// The gradients of this rank's share, f32, as leaves of a tree that is the same on every rank. They are averaged in place.
struct TrainTextAverage {
  const char* const* names;
  float* const* values;
  const std::size_t* counts;
  std::size_t leaves;
  std::int32_t wire;  // as of ringlet_average_gradients, where in blocks with wire_in_blocks(); -1 sends them as they are
  std::uint32_t stream;
  double all_reduce_size;  // in bytes, as in AverageOptions
  double weight;           // of this rank; negative if the average is not weighted
};

/// The parameters, f32, as leaves of a tree, and the options of the OuterTrainer that trains them. They are the same on every rank.
struct TrainTextOuter {
  const char* const* names;
  float* const* values;
  const std::size_t* axes;     // how many each leaf has
  const std::size_t* extents;  // of all axes of the first leaf, then of the next one's
  std::size_t leaves;
  std::int32_t wire;  // as in TrainTextAverage
  std::int32_t inner_steps;
  std::int32_t fragments;
  std::int32_t overlap;
  std::int32_t by_speed;   // 0 or 1
  double all_reduce_size;  // in bytes, as in AverageOptions
  double learning_rate;
  double momentum;
};

/// The index of each number in the array that train_text_numbers returns.
enum TrainTextNumber : std::int32_t {
  TRAIN_TEXT_RANKS,
  TRAIN_TEXT_STEP,             ///< number of steps done
  TRAIN_TEXT_STEPS,            ///< number of steps in the whole run
  TRAIN_TEXT_LOSS,             ///< of the last step's batch, nats per byte; this rank's share where it trains alone; NaN before the first
  TRAIN_TEXT_VALIDATIONS,      ///< number of evaluations of the held-out text so far
  TRAIN_TEXT_VALIDATION_LOSS,  ///< of the last evaluation
  TRAIN_TEXT_BATCH,            ///< sequences of a step
  TRAIN_TEXT_SHARE,            ///< number of those that this rank takes in the step under way
  TRAIN_TEXT_CONTEXT,          ///< bytes, which are tokens, in a sequence
  TRAIN_TEXT_PARAMETERS,
  TRAIN_TEXT_TEXT_BYTES,          ///< length of the text to learn
  TRAIN_TEXT_TOKENS,              ///< number of tokens this rank has trained on
  TRAIN_TEXT_SECONDS,             ///< duration of all steps, including waiting
  TRAIN_TEXT_WAITING_SHARE,       ///< fraction of that time in which this rank waited for the others
  TRAIN_TEXT_SECONDS_PER_SAMPLE,  ///< computing time of this rank; 0 if not known yet
  TRAIN_TEXT_CHECKED_STEP,        ///< number of steps done when all ranks' parameters were last equal; negative if never compared
  TRAIN_TEXT_AVERAGE_EVERY,       ///< steps between two averages of parameters; 0 where gradients are averaged in each step
  TRAIN_TEXT_NUMBERS
};

/// Creates a trainer that has not begun. `rank` and `ranks` are those of the group. `rank` is not 0, because rank 0 is native.
TRAIN_TEXT_EXPORT TrainText* train_text_create(std::int32_t rank, std::int32_t ranks);
TRAIN_TEXT_EXPORT void train_text_destroy(TrainText* trainer);

/// Returns a TrainTextNext.
TRAIN_TEXT_EXPORT std::int32_t train_text_next(const TrainText* trainer);
/// Computes at most `samples` sequences, and at least one. Returns 0 if more of the same act is left, else 1.
TRAIN_TEXT_EXPORT std::int32_t train_text_compute(TrainText* trainer, std::int32_t samples);
/// These return null if another kind of operation comes next.
///@{
TRAIN_TEXT_EXPORT const TrainTextExchange* train_text_exchange(TrainText* trainer);
TRAIN_TEXT_EXPORT const TrainTextAverage* train_text_average(TrainText* trainer);
TRAIN_TEXT_EXPORT const TrainTextOuter* train_text_outer(TrainText* trainer);
///@}
/// Begins an inner step, as ringlet::InnerStep has it; TRAIN_TEXT_SHARE is its number of samples. Does nothing unless TRAIN_TEXT_OUTER
/// comes next.
TRAIN_TEXT_EXPORT void train_text_begin_step(TrainText* trainer, double number, std::int32_t rank, std::int32_t ranks);
/// Tells the trainer that the collective, the vote, or the training by an OuterTrainer is done. The trainer takes in its result.
TRAIN_TEXT_EXPORT void train_text_done(TrainText* trainer);
/// After TRAIN_TEXT_FAILED, returns one sentence for people saying why training cannot continue. Returns "" otherwise.
TRAIN_TEXT_EXPORT const char* train_text_problem(const TrainText* trainer);

/// Returns TRAIN_TEXT_NUMBERS doubles. Numbers that are not known yet are 0.
TRAIN_TEXT_EXPORT const double* train_text_numbers(TrainText* trainer);
/// Returns how many sequences each rank takes in the step under way, one int32 per rank. Returns null before the settings have come.
TRAIN_TEXT_EXPORT const std::int32_t* train_text_counts(const TrainText* trainer);
/// Returns the hash of this rank's parameters at the last comparison as 16 hexadecimal digits, or "" before the first.
TRAIN_TEXT_EXPORT const char* train_text_hash(TrainText* trainer);

/// Lets the present model append `bytes` bytes to the text begun by the last train_text_write_anew. May be called between any two other
/// calls; it writes nothing before the parameters have come. A byte costs about as much as a third of a sample. Returns the number of bytes
/// in the text.
TRAIN_TEXT_EXPORT std::size_t train_text_write(TrainText* trainer, std::int32_t bytes);
TRAIN_TEXT_EXPORT void train_text_write_anew(TrainText* trainer);
/// Returns the text. Its bytes need not be valid UTF-8, and no zero follows them.
TRAIN_TEXT_EXPORT const std::uint8_t* train_text_written(const TrainText* trainer);
