#include "simd/kernels.hpp"

namespace ringlet::simd {

// WebAssembly has one rounding mode and keeps subnormals: nothing to set.
FloatEnvironment::FloatEnvironment() noexcept : saved_(0) {}
FloatEnvironment::~FloatEnvironment() { static_cast<void>(saved_); }

}  // namespace ringlet::simd
