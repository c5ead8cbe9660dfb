#pragma once

#include <cstdint>

namespace ringlet::command {

/// Bytes that programs can still get without the system swapping, where it says so; else those that nobody uses.
std::uint64_t available_memory();

}  // namespace ringlet::command
