#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <ringlet/average_options.hpp>
#include <ringlet/tensor.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <vector>

#include "core/engine/options.hpp"
#include "core/engine/procedure.hpp"
#include "core/gradients/bucket.hpp"
#include "core/gradients/tree_agreement.hpp"

namespace ringlet {

/// Averages gradients over a group while they are still being made, step after step. After each add() its driver does what next() says
/// until Done: full buckets have started then. After close() that Done ends the step: every gradient holds its average.
class Averager final : public Procedure {
 public:
  /// No bound on what is copied.
  static constexpr std::size_t kUnbounded = SIZE_MAX;
  /// The bound where all gradients are there from the start, a few buckets of the default size: one moves, the next stands ready for the
  /// stream, the others cover what packing and unpacking take.
  static constexpr std::size_t kFewBuckets = 128 << 20;

  /// `invalid_argument` for what does not fit.
  static Status check(const AverageOptions& options);

  /// Options have been checked. `group` outlives this. Where buckets of `most_bytes` are under way, the oldest is waited for, and written
  /// back, before another is filled: they are all the memory that averaging takes, but for gradients with gaps.
  Averager(const WorldOptions& group, const AverageOptions& options, std::size_t most_bytes = kUnbounded);

  /// This rank's share from the next step on; refused within a step.
  Status set_weight(std::optional<double> weight);
  /// Takes the next gradient; its memory is borrowed until the step has ended.
  Status add(TensorView gradient);
  /// The step's last gradient has been added.
  void close() { closed_ = true; }
  /// The whole step at once. In failure nothing has moved.
  Status add_all(std::span<const TensorView> gradients);
  /// Of this step so far, or of the last one before the next add().
  std::size_t collectives() const { return collectives_; }

  Action next() override;
  void abandon() override;

 private:
  enum class Awaited : std::uint8_t { nothing, weights, oldest };

  /// What is under way, or about to be.
  struct Move {
    std::unique_ptr<Bucket> bucket;  // null: the gradient itself is moved
    TensorView values;
    // A gradient with gaps: what is averaged in its place, and written back behind its last move.
    Tensor packed;
    TensorView gradient;
  };
  /// A gradient that goes in pieces.
  struct Cut {
    TensorView values;
    std::size_t done = 0;  // elements
    Tensor packed;
    TensorView gradient;
  };

  DType wire_dtype(DType dtype) const;
  bool full(std::size_t bytes) const;
  Action sum_weights();
  Status take_weights();
  std::optional<Move> take_gradient();
  std::optional<Move> take_whole(TensorView gradient);
  Move take_piece();
  std::optional<Move> fill_bucket(TensorView gradient);
  std::optional<Move> close_bucket();
  Bucket& bucket_for(DType dtype);
  std::unique_ptr<Bucket> new_bucket(DType dtype);
  Action start_move(Move move);
  Action wait_for_oldest();
  void end_oldest();
  void begin_step();
  void end_step();

  const WorldOptions& group_;
  AverageOptions options_;
  const std::size_t most_bytes_;

  Awaited awaited_ = Awaited::nothing;
  bool in_step_ = false;
  bool closed_ = false;
  bool weighted_ = false;  // the factor is known
  double total_weight_ = 0;
  double factor_ = 1.0;
  std::deque<TensorView> added_;  // and not taken yet
  std::optional<Cut> cut_;
  std::vector<std::unique_ptr<Bucket>> open_;  // at most one per dtype, in the order in which they were opened
  std::deque<Move> under_way_;                 // the oldest first
  std::vector<std::unique_ptr<Bucket>> spare_;
  std::size_t bytes_under_way_ = 0;  // of buckets
  std::size_t collectives_ = 0;
  std::size_t averages_ = 0;  // of them
};

/// Averages a tree of gradients, once, after it has been compared between the ranks. What is wrong with a gradient is found before anything
/// moves, and what is copied is bounded.
class TreeAverage final : public Procedure {
 public:
  /// What `gradients` views is borrowed until the end. `agreements` are the group's; both outlive this.
  TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options);
  Action next() override;
  void abandon() override { averager_.abandon(); }

 private:
  Status add_all();

  TreeAgreement agreement_;
  const std::vector<TensorView> gradients_;
  const AverageOptions options_;
  Averager averager_;
  bool added_ = false;
};

}  // namespace ringlet
