#include <ringlet/optimizers.hpp>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/optimizers/checks.hpp"

namespace ringlet {

MultiOptimizer::MultiOptimizer(std::vector<std::shared_ptr<Optimizer>> optimizers, std::vector<Filter> filters)
    : optimizers_(std::move(optimizers)), filters_(std::move(filters)) {
  if (optimizers_.empty()) refuse("MultiOptimizer: there is no optimizer; give at least one");
  if (filters_.size() != optimizers_.size() - 1)
    refuse("MultiOptimizer: " + std::to_string(filters_.size()) + " filters for " + std::to_string(optimizers_.size()) +
           " optimizers; every one but the last needs a filter");
  for (std::size_t i = 0; i < optimizers_.size(); ++i) {
    if (!optimizers_[i]) refuse("MultiOptimizer: optimizer " + std::to_string(i) + " is null");
    if (i < filters_.size() && !filters_[i]) refuse("MultiOptimizer: filter " + std::to_string(i) + " is empty");
  }
}

std::vector<Tree> MultiOptimizer::split(const Tree& tree) const {
  std::vector<Tree> parts(optimizers_.size());
  for (const auto& [name, values] : tree) {
    std::size_t taker = 0;
    while (taker < filters_.size() && !filters_[taker](name, values)) ++taker;
    parts[taker].add(name, values);
  }
  return parts;
}

void MultiOptimizer::apply_gradients(const Tree& gradients, const Tree& parameters) {
  const std::vector<Tree> parts = split(gradients);
  for (std::size_t i = 0; i < parts.size(); ++i) optimizers_[i]->apply_gradients(parts[i], parameters);
}

void MultiOptimizer::init(const Tree& parameters) {
  const std::vector<Tree> parts = split(parameters);
  for (std::size_t i = 0; i < parts.size(); ++i) optimizers_[i]->init(parts[i]);
}

Tree MultiOptimizer::state() {
  Tree all;
  for (const auto& optimizer : optimizers_)
    for (const auto& [name, values] : optimizer->state()) all.add(name, values);
  return all;
}

std::size_t MultiOptimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const auto& optimizer : optimizers_) bytes += optimizer->state_bytes();
  return bytes;
}

std::uint64_t MultiOptimizer::step() const { return optimizers_.front()->step(); }

void MultiOptimizer::set_step(std::uint64_t step) {
  for (const auto& optimizer : optimizers_) optimizer->set_step(step);
}

double MultiOptimizer::learning_rate() const { return optimizers_.front()->learning_rate(); }

void MultiOptimizer::set_learning_rate(LearningRate learning_rate) {
  for (const auto& optimizer : optimizers_) optimizer->set_learning_rate(learning_rate);
}

}  // namespace ringlet
