#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

namespace train_text {

ringlet::Tree tree_of(const Module<float>& module, std::span<float> values) {
  ringlet::Tree tree;
  for (const ParameterTensor& tensor : module.tensors()) {
    tree.add(tensor.name, ringlet::TensorView(values.data() + tensor.first, ringlet::DType::f32, ringlet::Shape(std::span(tensor.shape))));
  }
  return tree;
}

ringlet::Tree tree_of(const std::deque<Module<float>>& modules, std::span<float> values) {
  ringlet::Tree tree;
  for (const Module<float>& module : modules) {
    tree.add(module.name(), tree_of(module, values.first(module.count())));
    values = values.subspan(module.count());
  }
  return tree;
}

ringlet::Tree tree_of_parts(const std::vector<GradientPart>& parts, std::span<float> values) {
  ringlet::Tree tree;
  for (const GradientPart& part : parts) tree.add(part.name, values.subspan(part.first, part.count));
  return tree;
}

double share_of_mean(int samples, int batch, int ranks) { return static_cast<double>(samples) * ranks / batch; }

bool shares_are_weighted(const Settings& settings, int ranks) { return settings.shares == Shares::measured || settings.batch % ranks != 0; }

std::unique_ptr<ringlet::MultiOptimizer> make_optimizer(const ringlet::LearningRate& learning_rate) {
  const auto adamw = [&](double weight_decay) {
    return std::make_shared<ringlet::AdamW>(
        learning_rate, ringlet::AdamWOptions{.betas = {0.9, 0.99}, .weight_decay = weight_decay, .bias_correction = true});
  };
  const auto decays = [](std::string_view name, ringlet::ConstTensorView) { return name.ends_with(".weight"); };
  return std::make_unique<ringlet::MultiOptimizer>(std::vector<std::shared_ptr<ringlet::Optimizer>>{adamw(0.1), adamw(0.0)},
                                                   std::vector<ringlet::MultiOptimizer::Filter>{decays});
}

ringlet::Schedule learning_rate_schedule(int steps, double peak) {
  constexpr double kFloor = 0.05;
  const auto rise = static_cast<std::uint64_t>(std::max(steps / 20, 1));
  const auto fall = static_cast<std::uint64_t>(std::max(steps - steps / 20, 1));
  const double first = peak / static_cast<double>(rise);
  return ringlet::join_schedules({ringlet::linear_schedule(first, peak + first, rise), ringlet::linear_schedule(peak, kFloor * peak, fall)},
                                 {rise});
}

std::string problem_of_loss(std::uint64_t step, double loss, const std::string& options) {
  if (std::isfinite(loss)) return {};
  return "the loss of step " + std::to_string(step) + " is " + std::to_string(loss) + ": try a smaller " + options;
}

}  // namespace train_text
