#pragma once

#include <cstddef>

namespace ringlet::test {

/// How often this program has taken memory with `new`.
std::size_t allocation_count();

}  // namespace ringlet::test
