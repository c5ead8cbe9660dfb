#pragma once

#include <cstddef>

namespace ringlet::test {

/// Bytes that `new` has given out in this program and that are in use, and the most that there ever were. Aligned memory, which tensors
/// have, does not count. Any thread.
std::size_t memory_in_use();
std::size_t most_memory_in_use();

}  // namespace ringlet::test
