#pragma once

#include <ringlet/dtype.hpp>

#include "simd/kernels.hpp"

namespace ringlet::simd {

/// All kernels of one instruction set, indexed by DType, ReduceOp, BlockFormat and UpdateRule; null where there is no kernel. It is plain
/// data, so that the unit compiled for the instruction set contains only kernels and this table.
struct Table {
  ReduceFn reduce[kDTypeCount][kReduceOpCount];
  ScaleFn multiply[kDTypeCount];
  ScaleFn divide[kDTypeCount];
  CastFn cast[kDTypeCount][kDTypeCount];
  FoldFn sum_of_squares[kDTypeCount];
  FoldFn abs_max[kDTypeCount];
  MapFn canonical_nan[kDTypeCount];
  BlocksFn encode[kBlockFormatCount];
  BlocksFn decode[kBlockFormatCount];
  BlocksLeaveFn left_by[kBlockFormatCount];
  UpdateFn update[kDTypeCount][kUpdateRuleCount];
};

// Each table is defined in targets/ by the unit of that name, if CMake chose that unit for this platform.
extern const Table kScalarTable;
extern const Table kSse41Table;
extern const Table kAvx2Table;
extern const Table kAvx512Table;
extern const Table kNeon64Table;
extern const Table kWasmTable;

}  // namespace ringlet::simd
