#include "core/gradients/averager.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "core/base/names_text.hpp"
#include "core/base/number_text.hpp"
#include "core/engine/request_checks.hpp"
#include "core/engine/requests.hpp"
#include "core/gradients/weight.hpp"

namespace ringlet {

namespace {

Status check_weight(std::optional<double> weight) {
  if (!weight || (std::isfinite(*weight) && *weight >= 0)) return {};
  return invalid("weight is " + number_text(*weight) + "; it must be finite and not negative");
}

TensorView slice(TensorView values, std::size_t first, std::size_t count) {
  return {values.data() + first * size_of(values.dtype()), values.dtype(), count};
}

Feedback feedback_of(Residuals::Pair* residuals, std::size_t first) {
  if (residuals == nullptr) return {};
  return {residuals->committed.data() + first, residuals->next.data() + first};
}

std::vector<TensorView> views_of(const Tree& tree) {
  std::vector<TensorView> views;
  views.reserve(tree.size());
  for (const Leaf& leaf : tree) views.push_back(leaf.values);
  return views;
}

}  // namespace

Status Averager::check(const AverageOptions& options) {
  if (options.communication_type && !is_narrow(options.communication_type->dtype()))
    return invalid("communication_type is " + std::string(name_of(*options.communication_type)) + "; " + names_of_dtypes(is_narrow, "and") +
                   " are possible, and the blocks int8 and int4");
  return check_weight(options.weight);
}

Averager::Averager(const WorldOptions& group, const AverageOptions& options, std::size_t most_bytes, Residuals* residuals)
    : group_(group), options_(options), most_bytes_(most_bytes), residuals_(residuals == nullptr ? &own_residuals_ : residuals) {}

Status Averager::set_weight(std::optional<double> weight) {
  if (Status status = check_weight(weight); !status.ok()) return status;
  if (in_step_) return invalid("the weight is set within a step; set it before the step's first gradient");
  options_.weight = weight;
  known_total_.reset();
  return {};
}

Status Averager::set_weight(double weight, double total) {
  if (Status status = set_weight(weight); !status.ok()) return status;
  known_total_ = total;
  return {};
}

Status Averager::add(TensorView gradient) {
  if (!is_floating(gradient.dtype()))
    return invalid("a gradient of dtype " + std::string(name_of(gradient.dtype())) +
                   " cannot be averaged; cast it to a floating dtype first");
  if (gradient.data() == nullptr && gradient.count() > 0)
    return invalid("a gradient is null but has " + std::to_string(gradient.count()) + " elements");
  if (group_.size == 1 || gradient.count() == 0) return {};
  begin_step();
  added_.push_back(gradient);
  return {};
}

Status Averager::add_all(std::span<const TensorView> gradients) {
  for (const TensorView& gradient : gradients)
    if (Status status = add(gradient); !status.ok()) return status;
  close();
  return {};
}

void Averager::begin_step() {
  if (std::exchange(in_step_, true)) return;
  collectives_ = averages_ = 0;
  residuals_->begin();
  factor_ = known_total_ ? *options_.weight / *known_total_ : 1.0;
  weighted_ = !options_.weight || known_total_;
}

void Averager::end_step() {
  in_step_ = false;
  closed_ = starts_open_ = false;
}

void Averager::abandon() {
  awaited_ = Awaited::nothing;
  added_.clear();
  cut_.reset();
  open_.clear();
  under_way_.clear();
  bytes_under_way_ = 0;
  end_step();
}

Procedure::Action Averager::next() {
  const Awaited ended = std::exchange(awaited_, Awaited::nothing);
  if (ended == Awaited::oldest) end_oldest();
  if (ended == Awaited::weights)
    if (Status status = take_weights(); !status.ok()) return Done{std::move(status)};
  if (!added_.empty() && !weighted_) return sum_weights();
  while (cut_ || !added_.empty()) {
    if (bytes_under_way_ >= most_bytes_) return wait_for_oldest();
    if (auto move = take_gradient()) return start_move(std::move(*move));
  }
  if (!closed_ && !starts_open_) return Done{};
  if (auto move = close_bucket()) return start_move(std::move(*move));
  starts_open_ = false;
  if (!closed_) return Done{};
  if (!under_way_.empty()) return wait_for_oldest();
  if (residuals_ == &own_residuals_) own_residuals_.commit();
  end_step();
  return Done{};
}

/// If there are weights, every rank first needs their sum, which costs one collective of 8 bytes per step.
Procedure::Action Averager::sum_weights() {
  awaited_ = Awaited::weights;
  ++collectives_;
  total_weight_ = *options_.weight;
  const std::span<double> total(&total_weight_, 1);
  return run(for_purpose(Purpose::weights, make_all_reduce(ReduceOp::sum, total, total, 1.0, group_)));
}

Status Averager::take_weights() {
  if (!(total_weight_ > 0)) return invalid("the weights of all ranks are 0; at least one must be positive");
  if (std::isinf(total_weight_)) return invalid("the sum of all ranks' weights is too large for a double; give smaller ones");
  weighted_ = true;
  factor_ = *options_.weight / total_weight_;
  return {};
}

Residuals::Pair* Averager::residuals_for(const TensorView& gradient, const WireFormat& wire_format) {
  return wire_format.blocks && has_feedback(options_.communication_type) ? &residuals_->add(gradient.count()) : nullptr;
}

bool Averager::full(std::size_t bytes, const WireFormat& wire_format) const {
  const std::int64_t size = wire_format.bucket_bytes(options_.all_reduce_size);
  const std::int64_t limit = options_.first_bucket_size && averages_ == 0 ? std::min(*options_.first_bucket_size, size) : size;
  return limit <= 0 || bytes >= static_cast<std::size_t>(limit);
}

/// Takes the next gradient, or the next piece of one, and returns the move that can now start; nothing if the gradient waits in a bucket
/// that is not full.
std::optional<Averager::Move> Averager::take_gradient() {
  if (cut_) return take_piece();
  const TensorView gradient = added_.front();
  added_.pop_front();
  const WireFormat wire_format = wire_format_of(gradient);
  return full(wire_format.bytes(gradient.count()), wire_format) ? take_whole(gradient) : fill_bucket(gradient);
}

std::optional<Averager::Move> Averager::take_whole(TensorView gradient) {
  const WireFormat wire_format = wire_format_of(gradient);
  Tensor packed;
  TensorView values = gradient;
  if (!gradient.contiguous()) values = packed = Tensor::copy_of(gradient);
  if (wire_format != WireFormat{gradient.dtype()}) {
    cut_ = Cut{values, wire_format, residuals_for(gradient, wire_format), 0, std::move(packed), gradient};
    return take_piece();
  }
  weigh(values.data(), values.dtype(), values.count(), factor_, *group_.kernels);
  return Move{nullptr, values, std::move(packed), gradient};
}

/// A tensor that is larger than a bucket and is rounded for the network is moved in pieces of bucket size, so that the copies stay small.
Averager::Move Averager::take_piece() {
  const TensorView& values = cut_->values;
  const std::size_t granule = cut_->wire_format.granule();
  const std::size_t left = values.count() - cut_->done;
  std::size_t piece = left;
  if (const std::int64_t size = cut_->wire_format.bucket_bytes(options_.all_reduce_size); size > 0) {
    const std::size_t granules = static_cast<std::size_t>(size) / cut_->wire_format.bytes(granule);
    piece = std::min(std::max(granules, std::size_t{1}) * granule, left);
  }
  Move move;
  move.bucket = new_bucket(values.dtype(), cut_->wire_format);
  move.bucket->pack(slice(values, cut_->done, piece), factor_for(cut_->wire_format), *group_.kernels,
                    feedback_of(cut_->residuals, cut_->done));
  cut_->done += piece;
  if (piece == left) {
    move.packed = std::move(cut_->packed);
    move.gradient = cut_->gradient;
    cut_.reset();
  }
  return move;
}

std::optional<Averager::Move> Averager::fill_bucket(TensorView gradient) {
  const WireFormat wire_format = wire_format_of(gradient);
  Bucket& bucket = bucket_for(gradient.dtype(), wire_format);
  bucket.pack(gradient, factor_for(wire_format), *group_.kernels, feedback_of(residuals_for(gradient, wire_format), 0));
  if (!full(bucket.packed().size(), wire_format)) return std::nullopt;
  const auto it = std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open.get() == &bucket; });
  Move move;
  move.bucket = std::move(*it);
  open_.erase(it);
  return move;
}

std::optional<Averager::Move> Averager::close_bucket() {
  if (open_.empty()) return std::nullopt;
  Move move;
  move.bucket = std::move(open_.front());
  open_.erase(open_.begin());
  return move;
}

Bucket& Averager::bucket_for(DType dtype, const WireFormat& wire_format) {
  const auto it = std::find_if(open_.begin(), open_.end(),
                               [&](const auto& bucket) { return bucket->dtype() == dtype && bucket->wire_format() == wire_format; });
  if (it != open_.end()) return **it;
  open_.push_back(new_bucket(dtype, wire_format));
  return *open_.back();
}

std::unique_ptr<Bucket> Averager::new_bucket(DType dtype, const WireFormat& wire_format) {
  std::unique_ptr<Bucket> bucket;
  if (spare_.empty()) {
    bucket = std::make_unique<Bucket>();
  } else {
    bucket = std::move(spare_.back());
    spare_.pop_back();
  }
  bucket->open(dtype, wire_format);
  return bucket;
}

Procedure::Action Averager::start_move(Move move) {
  ++collectives_;
  ++averages_;
  WireFormat wire_format;
  if (move.bucket) {
    wire_format = move.bucket->wire_format();
    const Bytes packed = move.bucket->packed();
    bytes_under_way_ += packed.size();
    if (!wire_format.blocks) move.values = {packed.data(), wire_format.dtype, packed.size() / size_of(wire_format.dtype)};
  }
  const TensorView values = move.values;
  if (const Trace* trace = usable(group_.session.trace)) {
    move.since = trace->now();
    move.bytes = wire_format.blocks ? move.bucket->packed().size() : values.count() * size_of(values.dtype());
  }
  under_way_.push_back(std::move(move));
  return start(for_purpose(Purpose::gradients, make_task(wire_format, values)));
}

Result<CollectiveTask> Averager::make_task(const WireFormat& wire_format, const TensorView& values) const {
  if (wire_format.blocks) {
    Bucket& bucket = *under_way_.back().bucket;
    return make_all_reduce_blocks(*wire_format.blocks, bucket.packed(), bucket.left(), group_);
  }
  return options_.weight ? make_all_reduce(ReduceOp::sum, values, values, 1.0, group_) : make_all_mean(values, values, group_);
}

Procedure::Action Averager::wait_for_oldest() {
  awaited_ = Awaited::oldest;
  return WaitForOldest{};
}

void Averager::end_oldest() {
  Move move = std::move(under_way_.front());
  under_way_.pop_front();
  if (move.bucket) {
    bytes_under_way_ -= move.bucket->packed().size();
    move.bucket->unpack(*group_.kernels);
    spare_.push_back(std::move(move.bucket));
  }
  if (move.packed.count() > 0) copy(move.packed, move.gradient);
  record_ended(move);
}

void Averager::record_ended(const Move& move) {
  Trace* trace = usable(group_.session.trace);
  if (trace == nullptr) return;
  if (!track_) track_ = trace->add_track("buckets");
  TraceRecord record;
  record.track = *track_;
  record.name = "bucket";
  record.category = kGradientsCategory;
  record.begin = move.since;
  record.end = trace->now();
  record.overlaps = true;
  record.bytes = move.bytes;
  record.number = arrived_++;
  trace->record(record);
}

TreeAverage::TreeAverage(const GroupEngine& group, Agreements& agreements, const Tree& gradients, const AverageOptions& options,
                         std::optional<double> total_weight)
    : agreements_(agreements),
      agreement_(group, agreements, "average_gradients", gradients),
      gradients_(views_of(gradients)),
      options_(options),
      total_weight_(total_weight),
      averager_(group.options(), options, Averager::kFewBuckets, &residuals_) {}

Procedure::Action TreeAverage::next() {
  if (!added_) {
    Action action = agreement_.next();
    const auto* done = std::get_if<Done>(&action);
    if (done == nullptr || !done->status.ok()) return action;
    if (Status status = add_all(); !status.ok()) return Done{std::move(status)};
    added_ = true;
  }
  Action action = averager_.next();
  if (const auto* done = std::get_if<Done>(&action); done != nullptr && done->status.ok() && has_feedback(options_.communication_type)) {
    residuals_.commit();
    agreements_.keep_residuals(agreement_.hash(), std::move(residuals_));
  }
  return action;
}

void TreeAverage::abandon() {
  averager_.abandon();
  if (added_ && has_feedback(options_.communication_type)) agreements_.keep_residuals(agreement_.hash(), std::move(residuals_));
}

Status TreeAverage::add_all() {
  if (Status status = Averager::check(options_); !status.ok()) return status;
  if (options_.weight && total_weight_)
    if (Status status = averager_.set_weight(*options_.weight, *total_weight_); !status.ok()) return status;
  if (has_feedback(options_.communication_type)) residuals_ = agreements_.take_residuals(agreement_.hash());
  return averager_.add_all(gradients_);
}

}  // namespace ringlet
