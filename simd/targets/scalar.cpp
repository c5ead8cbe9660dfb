#include "simd/make_table.hpp"

namespace ringlet::simd {

constinit const Table kScalarTable = make_table<Scalar>();

}  // namespace ringlet::simd
