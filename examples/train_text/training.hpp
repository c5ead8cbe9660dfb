#pragma once

#include <ringlet/ringlet.hpp>
#include <span>
#include <vector>

#include "parameter_store.hpp"

// How the parameters change. Data-parallel ranks never exchange parameters after the first broadcast: they stay equal because each applies
// the same averaged gradients, and the library's optimizers and schedules give the same bits on every machine.
namespace train_text {

/// Gradients are scaled down to this global norm.
inline constexpr double kMaxNorm = 1.0;

/// Views of `values` (the parameters, or their gradients) by the names of `ranges`.
ringlet::Tree tree_of(const std::vector<ParameterRange>& ranges, std::span<float> values);

/// AdamW; what is named ".weight" decays, embeddings, gains and biases do not.
ringlet::MultiOptimizer make_optimizer(const ringlet::LearningRate& learning_rate);

/// A linear rise over the first twentieth of the steps, then a linear fall to a twentieth of the peak.
ringlet::Schedule learning_rate_schedule(int steps, double peak);

}  // namespace train_text
