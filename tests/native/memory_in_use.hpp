#pragma once

#include <cstddef>

namespace ringlet::test {

/// Return the bytes from `new` that are in use in this program, and the most that there were since the start or the last call of
/// forget_most_memory_in_use(). Aligned memory, such as that of tensors, does not count. For any thread.
std::size_t memory_in_use();
std::size_t most_memory_in_use();
void forget_most_memory_in_use();

}  // namespace ringlet::test
