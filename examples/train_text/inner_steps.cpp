#include "inner_steps.hpp"

#include <algorithm>
#include <chrono>
#include <ringlet/trace.hpp>

#include "training.hpp"

namespace train_text {

InnerSteps::InnerSteps(const Settings& settings, const Corpus& corpus, Transformer<float>& model, Replica& replica)
    : settings_(settings),
      corpus_(corpus),
      model_(model),
      replica_(replica),
      learning_rate_(learning_rate_schedule(settings.steps, settings.learning_rate)) {}

void InnerSteps::begin(std::uint64_t number, int rank, int ranks) {
  number_ = number;
  if (first_ < 0) first_ = done_ = static_cast<int>(number);
  mine_ = slice_of(settings_.batch, rank, ranks);
  computed_ = 0;
  loss_sum_ = 0;
  replica_.begin_gradients(mine_.count, settings_.batch, ranks);
}

bool InnerSteps::work(int samples) {
  const auto begin = std::chrono::steady_clock::now();
  const ringlet::TraceSpan span("step");
  const int count = std::min(samples, mine_.count - computed_);
  if (count > 0) compute({mine_.first + computed_, count});
  const bool is_done = computed_ == mine_.count;
  if (is_done) finish();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return is_done;
}

void InnerSteps::compute(Slice slice) {
  const Batch batch = training_batch(corpus_, settings_.shape.context, settings_.seed, number_, slice);
  const double part = static_cast<double>(slice.count) / mine_.count;
  ringlet::TraceSpan forward("forward");
  loss_sum_ += part * model_.forward(batch, replica_);
  forward.end();
  const ringlet::TraceSpan backward("backward");
  model_.backward(batch, replica_);
  replica_.end_slice(part);
  computed_ += slice.count;
  samples_ += slice.count;
}

void InnerSteps::finish() {
  if (mine_.count > 0) {
    loss_ = loss_sum_;
    problem_ = problem_of_loss(number_, loss_, "--learning-rate or --outer-lr");
    if (!problem_.empty()) return;
    const ringlet::TraceSpan optimizer("optimizer");
    // The optimizer counts this rank's own steps, by which it corrects its moments: a rank that joins late, or resumes, has none.
    replica_.optimizer().set_learning_rate(learning_rate_(number_));
    replica_.apply_gradients();
  }
  done_ = static_cast<int>(number_) + 1;
}

}  // namespace train_text
