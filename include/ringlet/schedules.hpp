#pragma once

#include <ringlet/detail/language.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace ringlet {

/// A number that changes from step to step, such as a learning rate. The argument is the number of steps taken before, 0 at first. Ranks
/// that apply the same gradients stay equal only if the schedule gives the same number on all of them. The schedules below do so on every
/// machine, because they use no function of the mathematical library.
using Schedule = std::function<double(std::uint64_t step)>;

// Names, parameters and formulas are MLX's. All functions throw `InvalidArgument` for numbers that are not finite.

/// init * decay_rate^step
Schedule exponential_decay(double init, double decay_rate);

/// init * decay_rate^(step / step_size), rounded down. `step_size` is at least 1.
Schedule step_decay(double init, double decay_rate, std::uint64_t step_size);

/// Half a period of a cosine from `init` to `end` over `decay_steps` steps (at least 1), and `end` afterwards.
Schedule cosine_decay(double init, std::uint64_t decay_steps, double end = 0);

/// A straight line from `init` to `end` over `steps` steps (at least 1), and `end` afterwards.
Schedule linear_schedule(double init, double end, std::uint64_t steps);

/// One schedule after the other: schedule i + 1 begins at boundary i and counts its steps from there. Throws `InvalidArgument` if there is
/// no schedule, a schedule is empty, the number of boundaries is not one less than that of schedules, or a boundary is below the previous
/// one.
Schedule join_schedules(std::vector<Schedule> schedules, std::vector<std::uint64_t> boundaries);

}  // namespace ringlet
