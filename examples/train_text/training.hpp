#pragma once

#include <deque>
#include <ringlet/optimizers.hpp>
#include <ringlet/tree.hpp>
#include <span>
#include <vector>

#include "model.hpp"
#include "settings.hpp"

// How the parameters change. The library's optimizers and schedules give the same bits on every machine.
namespace train_text {

/// Views of `values` (a module's parameters, or their gradients) by the names of its tensors.
ringlet::Tree tree_of(const Module<float>& module, std::span<float> values);
/// The same of all modules, one behind the other: "module.tensor".
ringlet::Tree tree_of(const std::deque<Module<float>>& modules, std::span<float> values);

/// The parts of `values` (the gradients of all modules, one behind the other), by their names and in their order.
ringlet::Tree tree_of_parts(const std::vector<GradientPart>& parts, std::span<float> values);

/// What a rank's mean over its `samples` is multiplied by so that the mean over all ranks is that over the batch: 1 where the ranks share
/// it evenly.
double share_of_mean(int samples, int batch, int ranks);

/// Whether a rank that saw more sequences counts for more in the average. Where all see as many, the plain mean says the same.
bool shares_are_weighted(const Settings& settings, int ranks);

/// AdamW; what is named ".weight" decays, embeddings, gains and biases do not.
ringlet::MultiOptimizer make_optimizer(const ringlet::LearningRate& learning_rate);

/// A linear rise over the first twentieth of the steps, then a linear fall to a twentieth of the peak.
ringlet::Schedule learning_rate_schedule(int steps, double peak);

}  // namespace train_text
