#pragma once

/* Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables". */

/** @file
 * Element types and operations. */

#include <ringlet/c/language.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. f16, bf16: two bytes each; complex64: two floats; complex128: two doubles; bool: one byte, 0 or 1. */
enum {
  RINGLET_BOOL = 0,
  RINGLET_U8 = 1,
  RINGLET_U16 = 2,
  RINGLET_U32 = 3,
  RINGLET_U64 = 4,
  RINGLET_I8 = 5,
  RINGLET_I16 = 6,
  RINGLET_I32 = 7,
  RINGLET_I64 = 8,
  RINGLET_F16 = 9,
  RINGLET_BF16 = 10,
  RINGLET_F32 = 11,
  RINGLET_F64 = 12,
  RINGLET_COMPLEX64 = 13,
  RINGLET_COMPLEX128 = 14
};

/** Stands for no dtype in an option that names one. */
enum { RINGLET_NO_DTYPE = -1 };

/** How two elements are reduced. Integers wrap; max and min give NaN if either is NaN; on bool sum and max are OR, prod and min AND. The
 * bitwise operations are for bool and integers. */
enum { RINGLET_SUM = 0, RINGLET_PROD = 1, RINGLET_MAX = 2, RINGLET_MIN = 3, RINGLET_BIT_AND = 4, RINGLET_BIT_OR = 5, RINGLET_BIT_XOR = 6 };

#ifdef __cplusplus
}
#endif
