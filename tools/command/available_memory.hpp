#pragma once

#include <cstdint>

namespace ringlet::command {

/// Returns the memory in bytes that programs can still get without swapping. If the system does not report that, returns its free memory.
std::uint64_t available_memory();

}  // namespace ringlet::command
