#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/result.hpp"
#include "wasm/cpp/objects.hpp"

namespace ringlet::browser {

/// An optimizer by the name of its class. `numbers` are its options in their order; those that are missing have their defaults.
/// `invalid_argument` for a name that there is not, too many numbers, and numbers out of their bounds.
Result<std::shared_ptr<AnyOptimizer>> make_optimizer(std::string_view formula, double learning_rate, std::span<const double> numbers,
                                                     std::optional<DType> state_dtype);

}  // namespace ringlet::browser
