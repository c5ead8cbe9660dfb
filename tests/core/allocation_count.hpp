#pragma once

#include <cstddef>

namespace ringlet::test {

/// Returns how often this program has taken memory with `new`.
std::size_t allocation_count();

}  // namespace ringlet::test
