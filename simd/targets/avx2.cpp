#include "simd/make_table.hpp"
#include "simd/targets/f16c.hpp"

namespace ringlet::simd {

constinit const Table kAvx2Table = make_table<xsimd::avx2>();

}  // namespace ringlet::simd
