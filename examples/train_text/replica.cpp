#include "replica.hpp"

#include <algorithm>

#include "corpus.hpp"
#include "training.hpp"

namespace train_text {

Replica::Replica(const Settings& settings, Transformer<float>& model)
    : ParameterStore(settings),
      memory_(model.modules()),
      parameters_(tree_of(model.modules(), memory_.values())),
      gradients_(tree_of(model.modules(), memory_.gradients())),
      optimizer_(make_optimizer(learning_rate_schedule(settings.steps, settings.learning_rate))) {
  optimizer_->init(parameters_);
}

void Replica::apply_gradients() {
  if (max_norm_) ringlet::clip_grad_norm(gradients_, *max_norm_);
  optimizer_->apply_gradients(gradients_, parameters_);
}

std::uint64_t Replica::parameter_hash() { return hash_of(std::as_bytes(memory_.values())); }

SlicedReplica::SlicedReplica(const Settings& settings, Transformer<float>& model)
    : Replica(settings, model),
      sums_memory_(ringlet::DType::f32, ringlet::Shape{static_cast<std::int64_t>(memory_.values().size())}),
      sums_(sums_memory_.values<float>()),
      parts_(tree_of_parts(model.gradient_parts(), sums_)) {}

void SlicedReplica::begin_gradients(int /*samples*/, int /*batch*/, int /*ranks*/) { std::fill(sums_.begin(), sums_.end(), 0.0F); }

void SlicedReplica::end_slice(double part_of_share) {
  const auto factor = static_cast<float>(part_of_share);
  const std::span<const float> slice = memory_.gradients();
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += factor * slice[i];
}

void SlicedReplica::apply_gradients() {
  std::copy(sums_.begin(), sums_.end(), memory_.gradients().begin());
  Replica::apply_gradients();
}

}  // namespace train_text
