#pragma once

#include <optional>
#include <ringlet/optimizers.hpp>
#include <ringlet/status.hpp>
#include <string>

namespace ringlet {

/// Ok, or what the constructor of an optimizer of ringlet/optimizers.hpp would throw, given this learning rate and its options.
template <class Options>
Status check_optimizer(const LearningRate& learning_rate, const Options& options);

namespace detail {

/// What is the same for all of them. `owner` is the optimizer's name.
Status check_optimizer(const std::string& owner, const LearningRate& learning_rate, std::optional<DType> state_dtype);

}  // namespace detail

}  // namespace ringlet
