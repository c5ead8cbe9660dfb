#pragma once

#include <memory>
#include <ringlet/optimizers.hpp>
#include <span>
#include <string_view>

namespace ringlet::browser {

/// An optimizer by the name of its class; null where there is none of that name. `numbers` are its options in their order; those that are
/// missing have their defaults. Throws `InvalidArgument` for numbers out of their bounds.
std::shared_ptr<Optimizer> make_optimizer(std::string_view formula, double learning_rate, std::span<const double> numbers,
                                          std::optional<DType> state_dtype);

}  // namespace ringlet::browser
