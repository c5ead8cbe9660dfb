#include "simd/make_table.hpp"

namespace ringlet::simd {

constinit const Table kSse41Table = make_table<xsimd::sse4_1>();

}  // namespace ringlet::simd
