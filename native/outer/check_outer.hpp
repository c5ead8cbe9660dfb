#pragma once

#include <cstdint>
#include <ringlet/outer.hpp>

namespace ringlet::native {

/// Throws `InvalidArgument` for options and parameters that do not fit.
void check_outer(const Tree& parameters, const OuterTrainerOptions& options);

/// Throws `InvalidArgument` unless so many inner steps are whole intervals.
void check_outer_steps(std::uint64_t steps, const OuterTrainerOptions& options);

}  // namespace ringlet::native
