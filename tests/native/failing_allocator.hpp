#pragma once

#include <cstdint>

namespace ringlet::test {

/// Makes libuv and OpenSSL allocate here, too. Called before either is used.
void take_libraries_allocators() noexcept;
/// Lets allocations fail in this process from its `first`-th call on, counted from now, `count` times. 0: not at all.
void fail_allocations(std::uint64_t first, std::uint64_t count) noexcept;
/// The calls since then.
std::uint64_t allocation_calls() noexcept;

}  // namespace ringlet::test
