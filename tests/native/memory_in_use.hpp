#pragma once

#include <cstddef>

namespace ringlet::test {

/// Return the bytes from `new` that are in use in this program, and the most that there ever were. Aligned memory, such as that of tensors,
/// does not count. For any thread.
std::size_t memory_in_use();
std::size_t most_memory_in_use();

}  // namespace ringlet::test
