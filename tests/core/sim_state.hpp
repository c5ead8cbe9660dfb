#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/options.hpp"
#include "core/plan/call.hpp"
#include "core/plan/part_layout.hpp"

// What is trained in the simulated trainings: a few numbers with rounding, whose bits tell the order of all additions.
namespace ringlet::test {

inline constexpr std::uint64_t kSimBatch = 12;
inline constexpr std::size_t kSimParameters = 6;

/// Parameters, then momenta.
using SimState = std::array<float, 2 * kSimParameters>;

/// A step's gradient of these samples. The first number is their exact sum and the second their count; the third is for the caller, and the
/// length is one that all algorithms take in turn.
std::vector<float> sim_gradient(const SimState& state, std::uint64_t step, const ElementRange& samples);
/// The sum over a step's batch that every trainer must apply.
std::int64_t expected_sum(std::uint64_t step);
/// Takes the step with what the gradients of all samples add up to.
void take_sim_step(SimState& state, std::span<const float> sum);
/// Of one row of it alone: what its gradients add up to, and the step with that.
///@{
float sim_sum_of(std::span<const float> sum, std::size_t row);
void take_sim_step(SimState& state, std::size_t row, float sum);
///@}
/// What decides on the order in which a step's gradients are added.
struct SimAverage {
  int ranks = 0, guests = 0;
  Algorithm algorithm{};
};
/// The state after a step that these ranks take together, undisturbed.
SimState reference_step(const SimState& state, std::uint64_t step, const SimAverage& average);
std::string bits_of(const SimState& state);
/// The options of the ranks that train, without rank and size.
WorldOptions sim_training_options();

}  // namespace ringlet::test
