#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ringlet/gradients.hpp>
#include <utility>
#include <vector>

#include "core/gradients/bucket.hpp"
#include "native/agreement.hpp"
#include "native/group_access.hpp"

namespace ringlet {

namespace {

[[noreturn]] void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

bool is_half_or_real(DType dtype) { return dtype >= DType::f16 && dtype <= DType::f64; }

void check_weight(std::optional<double> weight) {
  if (weight && (!std::isfinite(*weight) || *weight < 0)) refuse(fmt::format("weight is {}; it must be finite and not negative", *weight));
}

void check(const AverageOptions& options) {
  if (options.communication_type && *options.communication_type != DType::f16 && *options.communication_type != DType::bf16)
    refuse(fmt::format("communication_type is {}; f16 and bf16 are possible", name_of(*options.communication_type)));
  check_weight(options.weight);
}

TensorView slice(TensorView values, std::size_t first, std::size_t count) {
  return {values.data() + first * size_of(values.dtype()), values.dtype(), count};
}

}  // namespace

struct GradientAverager::State {
  State(Group g, const AverageOptions& o, const simd::Kernels* k) : group(std::move(g)), options(o), kernels(k) {}

  DType wire_dtype(DType dtype) const { return options.communication_type && is_half_or_real(dtype) ? *options.communication_type : dtype; }
  std::int64_t limit() const {
    return options.first_bucket_size && moved == 0 ? std::min(*options.first_bucket_size, options.all_reduce_size)
                                                   : options.all_reduce_size;
  }
  bool full(std::size_t bytes) const { return limit() <= 0 || bytes >= static_cast<std::size_t>(limit()); }
  void begin_step();
  Bucket& bucket_for(DType dtype);
  std::unique_ptr<Bucket> take_bucket();
  void add_in_place(TensorView gradient);
  void add_in_pieces(TensorView gradient);
  void start(std::unique_ptr<Bucket> bucket);
  Work start_average(TensorView values);

  struct Started {
    std::unique_ptr<Bucket> bucket;  // null: the gradient itself is moved
    Work work;                       // ends before the bucket goes
  };

  /// A gradient with gaps: what is averaged in its place, and written back.
  struct Packed {
    Tensor values;
    TensorView gradient;
  };

  Group group;
  AverageOptions options;
  const simd::Kernels* kernels;               // the group's
  std::vector<std::unique_ptr<Bucket>> open;  // at most one per dtype, in the order in which they were opened
  std::vector<Packed> packed;
  std::vector<Started> started;
  std::vector<std::unique_ptr<Bucket>> spare;
  double factor = 1.0;
  bool in_step = false;
  std::size_t collectives = 0;
  std::size_t moved = 0;  // of them, averages
};

/// With weights every rank needs their sum first; it costs one collective of 8 bytes a step.
void GradientAverager::State::begin_step() {
  if (std::exchange(in_step, true)) return;
  collectives = moved = 0;
  if (!options.weight || group.size() == 1) return;
  double total = *options.weight;
  group.all_sum(std::span(&total, 1), {.stream = options.stream});
  ++collectives;
  if (!(total > 0)) refuse("the weights of all ranks are 0; at least one must be positive");
  factor = *options.weight / total;
}

Bucket& GradientAverager::State::bucket_for(DType dtype) {
  const auto it = std::find_if(open.begin(), open.end(), [&](const auto& bucket) { return bucket->dtype() == dtype; });
  if (it != open.end()) return **it;
  open.push_back(take_bucket());
  open.back()->open(dtype, wire_dtype(dtype));
  return *open.back();
}

std::unique_ptr<Bucket> GradientAverager::State::take_bucket() {
  if (spare.empty()) return std::make_unique<Bucket>();
  auto bucket = std::move(spare.back());
  spare.pop_back();
  return bucket;
}

Work GradientAverager::State::start_average(TensorView values) {
  ++collectives;
  ++moved;
  const CallOptions call{.stream = options.stream};
  return options.weight ? group.all_reduce_async(ReduceOp::sum, values, values, call) : group.all_mean_async(values, values, call);
}

void GradientAverager::State::add_in_place(TensorView gradient) {
  if (factor != 1.0) kernels->multiply(gradient.dtype())(gradient.data(), gradient.count(), factor);
  started.push_back({nullptr, start_average(gradient)});
}

/// A tensor larger than a bucket that is cast on the way: bucket by bucket, so that the copies stay small.
void GradientAverager::State::add_in_pieces(TensorView gradient) {
  const DType wire = wire_dtype(gradient.dtype());
  const std::size_t count = gradient.count();
  const std::size_t piece =
      options.all_reduce_size > 0 ? std::max<std::size_t>(1, static_cast<std::size_t>(options.all_reduce_size) / size_of(wire)) : count;
  for (std::size_t first = 0; first < count; first += piece) {
    auto bucket = take_bucket();
    bucket->open(gradient.dtype(), wire);
    bucket->pack(slice(gradient, first, std::min(piece, count - first)), factor, *kernels);
    start(std::move(bucket));
  }
}

void GradientAverager::State::start(std::unique_ptr<Bucket> bucket) {
  Work work = start_average(bucket->packed());
  started.push_back({std::move(bucket), std::move(work)});
}

GradientAverager::GradientAverager(Group group, const AverageOptions& options) {
  check(options);
  const simd::Kernels& kernels = native::GroupAccess::kernels(group);
  state_ = std::make_unique<State>(std::move(group), options, &kernels);
}
GradientAverager::GradientAverager(GradientAverager&&) noexcept = default;
GradientAverager& GradientAverager::operator=(GradientAverager&&) noexcept = default;
GradientAverager::~GradientAverager() = default;

void GradientAverager::set_weight(std::optional<double> weight) {
  check_weight(weight);
  if (state_->in_step) refuse("the weight is set within a step; set it before the step's first gradient");
  state_->options.weight = weight;
}

void GradientAverager::add(TensorView gradient) {
  State& state = *state_;
  if (!is_valid(gradient.dtype()) || !is_floating(gradient.dtype()))
    refuse(fmt::format("a gradient of dtype {} cannot be averaged; cast it to a floating dtype first", name_of(gradient.dtype())));
  if (gradient.data() == nullptr && gradient.count() > 0) refuse(fmt::format("a gradient is null but has {} elements", gradient.count()));
  if (state.group.size() == 1 || gradient.count() == 0) return;
  state.begin_step();
  if (!gradient.contiguous()) {
    state.packed.push_back({Tensor::copy_of(gradient), gradient});
    gradient = state.packed.back().values;
  }
  const DType wire = state.wire_dtype(gradient.dtype());
  if (state.full(gradient.count() * size_of(wire)))
    return wire == gradient.dtype() ? state.add_in_place(gradient) : state.add_in_pieces(gradient);
  Bucket& bucket = state.bucket_for(gradient.dtype());
  bucket.pack(gradient, state.factor, *state.kernels);
  if (!state.full(bucket.wire_bytes())) return;
  const auto it = std::find_if(state.open.begin(), state.open.end(), [&](const auto& open) { return open.get() == &bucket; });
  auto full = std::move(*it);
  state.open.erase(it);
  state.start(std::move(full));
}

void GradientAverager::finish() {
  State& state = *state_;
  for (auto& bucket : std::exchange(state.open, {})) state.start(std::move(bucket));
  // Works that are left when one fails are waited for as they are destroyed.
  const auto packed = std::exchange(state.packed, {});
  auto started = std::exchange(state.started, {});
  state.in_step = false;
  state.factor = 1.0;
  for (auto& [bucket, work] : started) {
    work.wait();
    if (!bucket) continue;
    bucket->unpack(*state.kernels);
    state.spare.push_back(std::move(bucket));
  }
  for (const auto& [values, gradient] : packed) copy(values, gradient);
}

std::size_t GradientAverager::collectives() const noexcept { return state_->collectives; }

void average_gradients(Group group, std::span<const TensorView> gradients, const AverageOptions& options) {
  GradientAverager averager(std::move(group), options);
  for (const TensorView& gradient : gradients) averager.add(gradient);
  averager.finish();
}

void average_gradients(Group group, const Tree& gradients, const AverageOptions& options) {
  native::require_same_tree(group, "average_gradients", gradients, options.stream);
  GradientAverager averager(std::move(group), options);
  for (const Leaf& leaf : gradients) averager.add(leaf.values);
  averager.finish();
}

}  // namespace ringlet
