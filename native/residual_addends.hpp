#pragma once

#include <map>
#include <optional>
#include <ringlet/checkpoint.hpp>
#include <ringlet/wire.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/gradients/residuals.hpp"

namespace ringlet::native {

/// Residuals as a checkpoint saves and loads them: the committed ones.
class ResidualAddends final : public detail::Addends {
 public:
  /// Residuals whose names begin with `prefix`, and then are the gradients' names, by number; without names they are the numbers.
  struct Part {
    Residuals* residuals;
    std::string prefix{};
    std::vector<std::string> names{};
  };
  /// The residuals outlive this object.
  explicit ResidualAddends(std::vector<Part> parts) : parts_(std::move(parts)) {}

  std::map<std::string, std::span<float>> own() override;
  bool wants(const std::string& name) const override;
  void take(std::map<std::string, std::vector<float>> values) override;

 private:
  std::vector<Part> parts_;
};

std::vector<std::string> names_in(const Tree& tree);

/// Adds residuals to a checkpoint as addends of this name, if the wire leaves any.
void add_residuals(Checkpoint& checkpoint, std::string_view name, const std::optional<Wire>& wire,
                   std::vector<ResidualAddends::Part> parts);

}  // namespace ringlet::native
