#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <ringlet/optimizers.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"
#include "settings.hpp"

// Updating of parameters. The library's optimizers and schedules give the same bits on every machine.
namespace train_text {

/// Returns views of `values`, a module's parameters or gradients, by the names of its tensors.
ringlet::Tree tree_of(const Module<float>& module, std::span<float> values);
/// Returns the same views for all modules, whose values are concatenated. The names are "module.tensor".
ringlet::Tree tree_of(const std::deque<Module<float>>& modules, std::span<float> values);

/// Returns the parts of `values`, the concatenated gradients of all modules, by the parts' names and in their order.
ringlet::Tree tree_of_parts(const std::vector<GradientPart>& parts, std::span<float> values);

/// Returns the factor for a rank's mean over its `samples` that makes the mean over all ranks that over the batch. It is 1 if the ranks
/// share the batch evenly.
double share_of_mean(int samples, int batch, int ranks);

/// Tells whether a rank with more sequences counts more in the average. If all have equally many, the plain mean gives the same result.
bool shares_are_weighted(const Settings& settings, int ranks);

/// Makes AdamW. Parameters named "*.weight" decay; embeddings, gains and biases do not.
std::unique_ptr<ringlet::MultiOptimizer> make_optimizer(const ringlet::LearningRate& learning_rate);

/// Returns a schedule that rises linearly over the first twentieth of the steps, then falls linearly to a twentieth of `peak`.
ringlet::Schedule learning_rate_schedule(int steps, double peak);

/// Returns one sentence that says which options to lower where the loss of a step is not finite, else an empty one.
std::string problem_of_loss(std::uint64_t step, double loss, const std::string& options);

}  // namespace train_text
