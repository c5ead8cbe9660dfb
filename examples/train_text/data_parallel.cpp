#include "data_parallel.hpp"

#include <ringlet/checkpoint.hpp>

#include "training.hpp"

namespace train_text {

DataParallel::DataParallel(const Settings& settings, Transformer<float>& model, ringlet::Group group)
    : Replica(settings, model),
      settings_(settings),
      group_(group),
      options_{.all_reduce_size = settings.all_reduce_size, .communication_type = settings.communication_type},
      weighted_(shares_are_weighted(settings, group.size())),
      overlapped_(settings.guests == 0),
      parts_(tree_of_parts(model.gradient_parts(), memory_.gradients())),
      averager_(group, options_) {}

std::string DataParallel::set_group(const ringlet::Group& group) {
  group_ = group;
  weighted_ = shares_are_weighted(settings_, group.size());
  options_.weight.reset();
  averager_ = ringlet::GradientAverager(group, options_);
  return {};
}

void DataParallel::begin_gradients(int samples, int /*batch*/, int /*ranks*/) {
  if (!weighted_) return;
  options_.weight = samples;
  averager_.set_weight(samples);
}

void DataParallel::gradients_ready(std::span<float> gradients) {
  if (overlapped_) communication_.time([&] { averager_.add(gradients); });
}

void DataParallel::average() {
  if (overlapped_) return averager_.finish();
  ringlet::average_gradients(group_, parts_, options_);
}

void DataParallel::add_to(ringlet::Checkpoint& checkpoint) {
  checkpoint.add("parameters", parameters_).add("optimizer", optimizer_->state());
  averager_.add_to(checkpoint);
}

}  // namespace train_text
