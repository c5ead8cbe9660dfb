#include "simd/kernels.hpp"

namespace ringlet::simd {

// WebAssembly has only one rounding mode and always keeps subnormals, so there is nothing to set.
FloatEnvironment::FloatEnvironment() noexcept : saved_(0) {}
FloatEnvironment::~FloatEnvironment() { static_cast<void>(saved_); }

}  // namespace ringlet::simd
