#include "native/residual_addends.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include "core/gradients/wire_format.hpp"

namespace ringlet::native {

namespace {

// Far above what a model has, and little memory.
constexpr std::size_t kMostGradients = 1 << 20;

/// The number of the gradient of that name; nothing if the part has none.
std::optional<std::size_t> number_in(const ResidualAddends::Part& part, std::string_view name) {
  if (!name.starts_with(part.prefix)) return std::nullopt;
  name.remove_prefix(part.prefix.size());
  if (!part.names.empty()) {
    const auto found = std::find(part.names.begin(), part.names.end(), name);
    if (found == part.names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - part.names.begin());
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number >= kMostGradients) return std::nullopt;
  return number;
}

}  // namespace

std::map<std::string, std::span<float>> ResidualAddends::own() {
  std::map<std::string, std::span<float>> all;
  for (const auto& [residuals, prefix, names] : parts_)
    for (std::size_t number = 0; number < residuals->size(); ++number) {
      const std::span<float> values = residuals->committed(number);
      if (values.empty() || (!names.empty() && number >= names.size())) continue;
      all.emplace(prefix + (names.empty() ? std::to_string(number) : names[number]), values);
    }
  return all;
}

bool ResidualAddends::wants(const std::string& name) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return number_in(part, name).has_value(); });
}

void ResidualAddends::take(std::map<std::string, std::vector<float>> values) {
  for (const Part& part : parts_) part.residuals->clear();
  for (auto& [name, own] : values)
    for (const Part& part : parts_)
      if (const auto number = number_in(part, name)) {
        part.residuals->set(*number, std::move(own));
        break;
      }
}

std::vector<std::string> names_in(const Tree& tree) {
  std::vector<std::string> names;
  for (const Leaf& leaf : tree) names.push_back(leaf.name);
  return names;
}

void add_residuals(Checkpoint& checkpoint, std::string_view name, const std::optional<Wire>& wire,
                   std::vector<ResidualAddends::Part> parts) {
  if (has_feedback(wire)) checkpoint.add_addends(std::string(name), std::make_shared<ResidualAddends>(std::move(parts)));
}

}  // namespace ringlet::native
