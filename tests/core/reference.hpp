#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/call.hpp"
#include "core/plan/topology.hpp"
#include "sim/sim_random.hpp"

namespace ringlet::test {

using Values = std::vector<std::byte>;

/// Returns `count` elements with NaNs, infinities and zeros among them.
Values random_values(DType dtype, std::size_t count, SimRandom& random);

/// Returns the whole reduced buffer, in the order that the call's algorithm promises. Exchange, direct and leaves go by rank, with f16 and
/// bf16 gathered in f32 and rounded once; the ring rounds at each hop. By machines each machine's ranks are added like that, in rank order
/// or, in large all-reduces, in the order of a chain that rounds at each hop, and then the machines' sums. Uses the scalar kernels one
/// element at a time.
Values reduced(const Call& call, const std::vector<Values>& inputs, const Topology& topology);

}  // namespace ringlet::test
