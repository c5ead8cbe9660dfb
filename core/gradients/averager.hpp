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
#include "core/gradients/residuals.hpp"
#include "core/gradients/tree_agreement.hpp"

namespace ringlet {

/// Averages gradients over a group, step after step, while they are still being computed. After each add() the driver executes next() until
/// Done; by then the full buckets have been started. After close(), Done ends the step: every gradient holds its average.
class Averager final : public Procedure {
 public:
  /// The memory for copies is not bounded.
  static constexpr std::size_t kUnbounded = SIZE_MAX;
  /// The bound if all gradients are there from the start: a few buckets of the default size. One is being moved, the next is ready for the
  /// stream, and the others cover the time that packing and unpacking take.
  static constexpr std::size_t kFewBuckets = 128 << 20;

  /// Returns `invalid_argument` for options that do not fit.
  static Status check(const AverageOptions& options);

  /// `options` must have passed check(). `group` outlives this object. If buckets of `most_bytes` are under way, the oldest is waited for
  /// and written back before another is filled. So averaging takes no more memory than that, except for gradients with gaps and for
  /// residuals. These are in `residuals`, which outlives this object and whose owner commits the steps; if it is null, this object has its
  /// own, and a step is committed when its averages are complete.
  Averager(const WorldOptions& group, const AverageOptions& options, std::size_t most_bytes = kUnbounded, Residuals* residuals = nullptr);
  Averager(const Averager&) = delete;
  Averager& operator=(const Averager&) = delete;

  /// Sets this rank's share from the next step on; `invalid_argument` within a step.
  Status set_weight(std::optional<double> weight);
  /// The same where the sum of all ranks' weights, which is positive, is known: then no collective is needed to find it.
  Status set_weight(double weight, double total);
  /// Adds the next gradient; its memory is borrowed until the step has ended.
  Status add(TensorView gradient);
  /// Lets the buckets that are not full start, too, at the driver's next turn, which does not wait for them. The step goes on.
  void start_open() { starts_open_ = true; }
  /// Says that the step's last gradient has been added.
  void close() { closed_ = true; }
  /// Adds all gradients of a step. If it fails, nothing has moved.
  Status add_all(std::span<const TensorView> gradients);
  /// The number of collectives of this step so far, or of the last one before the next add().
  std::size_t collectives() const { return collectives_; }
  Residuals& residuals() { return *residuals_; }

  Action next() override;
  void abandon() override;

 private:
  enum class Awaited : std::uint8_t { nothing, weights, oldest };

  /// A collective that is under way or about to start.
  struct Move {
    std::unique_ptr<Bucket> bucket;  // null if the gradient itself is moved
    TensorView values;
    // Of a gradient with gaps: `packed` is averaged in its place and copied back to `gradient` after its last move.
    Tensor packed;
    TensorView gradient;
    Instant since{};  // if there is a trace: when it left
    std::size_t bytes = 0;
  };
  /// A gradient that is moved in pieces.
  struct Cut {
    TensorView values;
    WireFormat wire_format;
    Residuals::Pair* residuals = nullptr;
    std::size_t done = 0;  // elements
    Tensor packed;
    TensorView gradient;
  };

  WireFormat wire_format_of(const TensorView& gradient) const { return ringlet::wire_format_of(gradient, options_.communication_type); }
  Residuals::Pair* residuals_for(const TensorView& gradient, const WireFormat& wire_format);
  /// What a gradient is multiplied by. A plain mean in blocks is divided before they are rounded, as one by weights is, so that residuals
  /// mean the same whatever the number of ranks and their weights.
  double factor_for(const WireFormat& wire_format) const {
    return wire_format.blocks && !options_.weight ? factor_ / group_.size : factor_;
  }
  bool full(std::size_t bytes, const WireFormat& wire_format) const;
  Action sum_weights();
  Status take_weights();
  std::optional<Move> take_gradient();
  std::optional<Move> take_whole(TensorView gradient);
  Move take_piece();
  std::optional<Move> fill_bucket(TensorView gradient);
  std::optional<Move> close_bucket();
  Bucket& bucket_for(DType dtype, const WireFormat& wire_format);
  std::unique_ptr<Bucket> new_bucket(DType dtype, const WireFormat& wire_format);
  Action start_move(Move move);
  Result<CollectiveTask> make_task(const WireFormat& wire_format, const TensorView& values) const;
  Action wait_for_oldest();
  void end_oldest();
  void record_ended(const Move& move);
  void begin_step();
  void end_step();

  const WorldOptions& group_;
  AverageOptions options_;
  const std::size_t most_bytes_;
  std::optional<double> known_total_;  // of the ranks' weights

  Awaited awaited_ = Awaited::nothing;
  bool in_step_ = false;
  bool closed_ = false;
  bool starts_open_ = false;
  bool weighted_ = false;  // factor_ has been computed
  double total_weight_ = 0;
  double factor_ = 1.0;
  std::deque<TensorView> added_;  // added and not yet taken
  std::optional<Cut> cut_;
  std::vector<std::unique_ptr<Bucket>> open_;  // at most one per dtype and wire format, in the order in which they were opened
  std::deque<Move> under_way_;                 // the oldest first
  std::vector<std::unique_ptr<Bucket>> spare_;
  std::size_t bytes_under_way_ = 0;  // of the buckets in under_way_
  std::size_t collectives_ = 0;
  Residuals own_residuals_;
  Residuals* const residuals_;          // these or the owner's
  std::optional<std::uint32_t> track_;  // if there is a trace, of the moves
  std::uint64_t arrived_ = 0;           // how many moves have ended, in all steps
  std::size_t averages_ = 0;            // how many of the collectives average gradients
};

/// Averages a tree of gradients once, after the ranks have compared their trees. Invalid gradients are found before anything moves, and the
/// memory for copies is bounded. With error feedback the residuals are kept in the group's `agreements` from one average of such a tree to
/// the next.
class TreeAverage final : public Procedure {
 public:
  /// The memory that `gradients` views is borrowed until the end. `group` and `agreements`, which belong to it, outlive this object.
  /// `total_weight` is set where the sum of all ranks' weights is known.
  TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options,
              std::optional<double> total_weight = std::nullopt);
  Action next() override;
  void abandon() override;

 private:
  Status add_all();

  Agreements& agreements_;

  TreeAgreement agreement_;
  const std::vector<TensorView> gradients_;
  const AverageOptions options_;
  const std::optional<double> total_weight_;
  Residuals residuals_;
  Averager averager_;
  bool added_ = false;
};

}  // namespace ringlet
