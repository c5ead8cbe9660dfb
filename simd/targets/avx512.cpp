#include "simd/make_table.hpp"
#include "simd/targets/f16c.hpp"

namespace ringlet::simd {

constinit const Table kAvx512Table = make_table<xsimd::avx512bw>();

}  // namespace ringlet::simd
