#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/result.hpp"
#include "wasm/cpp/objects.hpp"

namespace ringlet::browser {

/// Makes an optimizer by the name of its class. `numbers` are its options in their order; missing ones have their defaults. Fails with
/// `invalid_argument` for an unknown name, too many numbers, or numbers out of their bounds.
Result<std::shared_ptr<AnyOptimizer>> make_optimizer(std::string_view formula, double learning_rate, std::span<const double> numbers,
                                                     std::optional<DType> state_dtype);

}  // namespace ringlet::browser
