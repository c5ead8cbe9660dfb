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

/// Returns the targets, slowest first, with scalar at the front. The file in platform/ that CMake chose defines it.
std::span<const Target> target_list() noexcept;

}  // namespace ringlet::simd
