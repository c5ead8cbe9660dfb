#include "tab_outer.hpp"

#include <algorithm>
#include <ringlet/average_options.hpp>

namespace train_text {

TabLeaves::TabLeaves(const ringlet::Tree& tree) {
  for (const ringlet::Leaf& leaf : tree) {
    names.push_back(leaf.name.c_str());
    values.push_back(reinterpret_cast<float*>(leaf.values.data()));
    counts.push_back(leaf.values.count());
    axes.push_back(leaf.values.shape().axes());
    for (const std::int64_t extent : leaf.values.shape().extents()) extents.push_back(static_cast<std::size_t>(extent));
  }
}

std::int32_t number_of(const std::optional<ringlet::Wire>& wire) {
  if (!wire) return -1;
  if (wire->blocks()) return ringlet::kFirstBlockFormat + static_cast<std::int32_t>(*wire->blocks());
  return static_cast<std::int32_t>(wire->dtype());
}

TabOuter::TabOuter(const Settings& settings, const Corpus& corpus, Transformer<float>& model, Replica& replica)
    : settings_(settings),
      replica_(replica),
      steps_(settings, corpus, model, replica),
      leaves_(replica.parameters()),
      description_{.names = leaves_.names.data(),
                   .values = leaves_.values.data(),
                   .axes = leaves_.axes.data(),
                   .extents = leaves_.extents.data(),
                   .leaves = leaves_.names.size(),
                   .wire = number_of(settings.communication_type),
                   .inner_steps = settings.inner_steps,
                   .fragments = settings.fragments,
                   .overlap = settings.overlap,
                   .by_speed = settings.shares == Shares::measured ? 1 : 0,
                   .all_reduce_size = static_cast<double>(settings.all_reduce_size),
                   .learning_rate = settings.outer_learning_rate,
                   .momentum = settings.outer_momentum} {}

void TabOuter::begin_step(std::uint64_t number, int rank, int ranks) {
  if (steps_.first() < 0) began_ = std::chrono::steady_clock::now();
  steps_.begin(number, rank, ranks);
  is_in_step_ = true;
}

void TabOuter::end(int ranks) {
  own_end_ = {replica_.parameter_hash(), static_cast<std::uint64_t>(steps_.samples())};
  all_ends_.assign(static_cast<std::size_t>(ranks), {});
}

void TabOuter::set_numbers(std::span<double> numbers) const {
  numbers[TRAIN_TEXT_AVERAGE_EVERY] = steps_between_averages(settings_);
  if (steps_.first() < 0) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  numbers[TRAIN_TEXT_STEP] = steps_.done();
  numbers[TRAIN_TEXT_LOSS] = steps_.loss();
  numbers[TRAIN_TEXT_SHARE] = steps_.share();
  numbers[TRAIN_TEXT_TOKENS] = steps_.samples() * settings_.shape.context;
  numbers[TRAIN_TEXT_SECONDS] = seconds;
  numbers[TRAIN_TEXT_WAITING_SHARE] = seconds > 0 ? std::max(1 - steps_.seconds() / seconds, 0.0) : 0.0;
  numbers[TRAIN_TEXT_SECONDS_PER_SAMPLE] = steps_.samples() > 0 ? steps_.seconds() / steps_.samples() : 0.0;
}

}  // namespace train_text
