#include "simd/make_table.hpp"

namespace ringlet::simd {

constinit const Table kWasmTable = make_table<xsimd::sse2>();

}  // namespace ringlet::simd
