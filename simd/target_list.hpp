#pragma once

#include <span>
#include <string_view>

#include "simd/table.hpp"

namespace ringlet::simd {

/// One instruction set that this build has kernels for.
struct Target {
  std::string_view name;
  const Table* table;
  bool (*runs_here)() noexcept;
};

/// Slowest first, scalar at the front; defined by the file in platform/ that CMake chose.
std::span<const Target> target_list() noexcept;

}  // namespace ringlet::simd
