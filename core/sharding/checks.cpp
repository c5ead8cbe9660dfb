#include "core/sharding/checks.hpp"

#include <cmath>
#include <numeric>
#include <string>

#include "core/base/names_text.hpp"
#include "core/base/refuse.hpp"

namespace ringlet {

namespace {

std::string quoted(const std::string& name) { return "the gradient '" + name + "' is "; }

}  // namespace

Status check_real_dtype(std::string_view what, std::optional<DType> dtype) {
  if (!dtype || is_real(*dtype)) return {};
  return invalid(std::string(what) + " is " + std::string(name_of(*dtype)) + "; " + names_of_dtypes(is_real, "and") + " are possible");
}

Status check_real_wire(std::string_view what, const std::optional<Wire>& wire) {
  return check_real_dtype(what, wire ? std::optional(wire->dtype()) : std::nullopt);
}

Status check_gradients(const Tree& gradients, bool cast) {
  for (const auto& [name, values] : gradients) {
    if (!is_floating(values.dtype())) return invalid(quoted(name) + describe(values) + "; gradients must be floating");
    if (cast && !is_real(values.dtype())) return invalid(quoted(name) + describe(values) + ", which cannot be reduced in another dtype");
    if (values.data() == nullptr && values.count() > 0) return invalid(quoted(name) + "null");
  }
  return {};
}

Status check_same_shapes(const Tree& gradients, const Tree& parameters) {
  const Tree alike = gradients.map([&](const std::string& name, const TensorView& values) {
    const TensorView* parameter = parameters.find(name);
    return TensorView(values.data(), parameter != nullptr ? parameter->dtype() : values.dtype(), values.shape());
  });
  const std::string text = difference(alike, "the gradients", parameters, "the parameters");
  return text.empty() ? Status() : invalid("gradients and parameters do not fit: " + text);
}

Status check_shard_weights(std::span<const double> weights, int ranks) {
  if (weights.empty()) return {};
  if (weights.size() != static_cast<std::size_t>(ranks))
    return invalid(std::to_string(weights.size()) + " shard weights for " + std::to_string(ranks) + " ranks; give one per rank");
  for (std::size_t rank = 0; rank < weights.size(); ++rank)
    if (!std::isfinite(weights[rank]) || weights[rank] < 0)
      return invalid("the shard weight of rank " + std::to_string(rank) + " is " + std::to_string(weights[rank]) +
                     "; it must be finite and not negative");
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(total > 0) || !std::isfinite(total))
    return invalid("the shard weights add up to " + std::to_string(total) + "; at least one must be positive");
  return {};
}

}  // namespace ringlet
