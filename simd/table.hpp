#pragma once

#include <ringlet/dtype.hpp>

#include "simd/kernels.hpp"

namespace ringlet::simd {

/// All kernels of one instruction set, by the numbers of DType, ReduceOp and UpdateRule; null where there is none. Plain data, so that the
/// unit that is compiled for the instruction set holds nothing but kernels and this.
struct Table {
  ReduceFn reduce[kDTypeCount][kReduceOpCount];
  ScaleFn multiply[kDTypeCount];
  ScaleFn divide[kDTypeCount];
  CastFn cast[kDTypeCount][kDTypeCount];
  FoldFn sum_of_squares[kDTypeCount];
  FoldFn abs_max[kDTypeCount];
  MapFn canonical_nan[kDTypeCount];
  UpdateFn update[kDTypeCount][kUpdateRuleCount];
};

// Each is defined in targets/ by the unit of that name, if CMake chose it for this platform.
extern const Table kScalarTable;
extern const Table kSse41Table;
extern const Table kAvx2Table;
extern const Table kAvx512Table;
extern const Table kNeon64Table;
extern const Table kWasmTable;

}  // namespace ringlet::simd
