#pragma once

#include <cstddef>
#include <span>

namespace ringlet::native {

/// Writes all bytes to a descriptor, as often as signals interrupt that. Returns 0, or the error's number. Any thread.
int write_all(int descriptor, std::span<const std::byte> bytes) noexcept;

}  // namespace ringlet::native
