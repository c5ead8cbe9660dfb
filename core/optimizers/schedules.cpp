#include <algorithm>
#include <initializer_list>
#include <ringlet/schedules.hpp>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/optimizers/checks.hpp"
#include "core/optimizers/power.hpp"

namespace ringlet {

namespace {

void require_finite(const char* owner, std::initializer_list<std::pair<const char*, double>> numbers) {
  OptionChecks checks(owner);
  for (const auto& [name, value] : numbers) checks.finite(name, value);
  throw_if_failed(checks.status());
}

void require_steps(const std::string& owner, const std::string& name, std::uint64_t steps) {
  if (steps == 0) refuse(owner + ": " + name + " is 0; it must be at least 1");
}

/// Computes cos(pi * part) for `part` from 0 to 1.
double cosine_of_half_turn(double part) {
  if (part > 0.5) return -cosine_of_half_turn(1 - part);
  constexpr double kPi = 3.14159265358979323846;
  constexpr int kTerms = 12;
  const double square = kPi * part * (kPi * part);
  double sum = 1;
  for (int term = kTerms; term > 0; --term) sum = 1 - square / ((2 * term - 1) * (2 * term)) * sum;
  return sum;
}

}  // namespace

Schedule exponential_decay(double init, double decay_rate) {
  require_finite("exponential_decay", {{"init", init}, {"decay_rate", decay_rate}});
  return [=](std::uint64_t step) { return init * power(decay_rate, step); };
}

Schedule step_decay(double init, double decay_rate, std::uint64_t step_size) {
  require_finite("step_decay", {{"init", init}, {"decay_rate", decay_rate}});
  require_steps("step_decay", "step_size", step_size);
  return [=](std::uint64_t step) { return init * power(decay_rate, step / step_size); };
}

Schedule cosine_decay(double init, std::uint64_t decay_steps, double end) {
  require_finite("cosine_decay", {{"init", init}, {"end", end}});
  require_steps("cosine_decay", "decay_steps", decay_steps);
  return [=](std::uint64_t step) {
    if (step >= decay_steps) return end;
    const double left = 0.5 * (1 + cosine_of_half_turn(static_cast<double>(step) / static_cast<double>(decay_steps)));
    return end + left * (init - end);
  };
}

Schedule linear_schedule(double init, double end, std::uint64_t steps) {
  require_finite("linear_schedule", {{"init", init}, {"end", end}});
  require_steps("linear_schedule", "steps", steps);
  return [=](std::uint64_t step) {
    if (step >= steps) return end;
    return init + (end - init) * (static_cast<double>(step) / static_cast<double>(steps));
  };
}

Schedule join_schedules(std::vector<Schedule> schedules, std::vector<std::uint64_t> boundaries) {
  if (schedules.empty()) refuse("join_schedules: there is no schedule; give at least one");
  if (boundaries.size() != schedules.size() - 1)
    refuse("join_schedules: " + std::to_string(boundaries.size()) + " boundaries for " + std::to_string(schedules.size()) +
           " schedules; there must be one fewer than schedules");
  for (std::size_t i = 0; i < schedules.size(); ++i)
    if (!schedules[i]) refuse("join_schedules: schedule " + std::to_string(i) + " is empty");
  for (std::size_t i = 1; i < boundaries.size(); ++i)
    if (boundaries[i] < boundaries[i - 1])
      refuse("join_schedules: boundary " + std::to_string(boundaries[i]) + " comes after " + std::to_string(boundaries[i - 1]) +
             "; they must not fall");
  return [schedules = std::move(schedules), boundaries = std::move(boundaries)](std::uint64_t step) {
    const auto passed = std::upper_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin();
    const std::uint64_t begin = passed == 0 ? 0 : boundaries[static_cast<std::size_t>(passed) - 1];
    return schedules[static_cast<std::size_t>(passed)](step - begin);
  };
}

}  // namespace ringlet
