#pragma once

#include <ringlet/detail/language.hpp>

#include <cstdint>

namespace ringlet {

/// Whether the parts that ranks own in an all-reduce follow the speed of their links.
enum class PartsPolicy : std::uint8_t {
  even = 0,      ///< no: all native ranks own equal parts
  measured = 1,  ///< yes, as it is measured when the ranks meet, and while they train
  /// As it shows while they train, for those calls whose results have the same bits by even parts. Of averages with error feedback that is
  /// so within a step (BlockOptions::feedback).
  passive = 2,
};

}  // namespace ringlet
