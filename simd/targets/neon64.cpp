#include "simd/make_table.hpp"
#include "simd/targets/neon_half.hpp"

namespace ringlet::simd {

constinit const Table kNeon64Table = make_table<xsimd::neon64>();

}  // namespace ringlet::simd
