#pragma once

#include <ringlet/detail/language.hpp>

#include <cstdint>

namespace ringlet {

/// Operations of one stream run in the order in which they were started; operations of two streams overlap.
/// Every rank must use the same stream number for the same operation.
struct Stream {
  std::uint16_t id = 0;  ///< 0 to 1023
};

}  // namespace ringlet
