#pragma once

#include <utility>

#include "simd/blocks.hpp"
#include "simd/fold.hpp"
#include "simd/map.hpp"
#include "simd/reduce.hpp"
#include "simd/table.hpp"
#include "simd/update.hpp"

namespace ringlet::simd {
namespace {

/// Fills one row: all kernels that read elements of T.
template <class Arch, class T, class... All>
constexpr void fill_row(Table& table, std::size_t row, TypeList<All...>) {
  [&]<std::size_t... op>(std::index_sequence<op...>) {
    const auto fill_op = [&]<ReduceOp each>() {
      if constexpr (!(Floating<T> && is_bitwise(each))) table.reduce[row][static_cast<std::size_t>(each)] = reduce<Arch, T, each>;
    };
    (fill_op.template operator()<static_cast<ReduceOp>(op)>(), ...);
  }(std::make_index_sequence<kReduceOpCount>());
  if constexpr (Floating<T>) {
    table.multiply[row] = scale<Arch, T, Scaling::multiply>;
    table.divide[row] = scale<Arch, T, Scaling::divide>;
    table.sum_of_squares[row] = sum_of_squares<Arch, T>;
    table.canonical_nan[row] = canonical_nan<Arch, T>;
  }
  if constexpr (std::floating_point<T>) {
    [&]<std::size_t... rule>(std::index_sequence<rule...>) {
      ((table.update[row][rule] = update<Arch, T, static_cast<UpdateRule>(rule)>), ...);
    }(std::make_index_sequence<kUpdateRuleCount>());
  }
  if constexpr (Real<T>) {
    table.abs_max[row] = abs_max<Arch, T>;
    std::size_t column = 0;
    const auto fill_cast = [&]<class To>(TypeList<To>) {
      if constexpr (Real<To>) table.cast[row][column] = cast<Arch, T, To>;
      ++column;
    };
    (fill_cast(TypeList<All>()), ...);
  }
}

template <class Arch, class... All>
constexpr Table make_table(TypeList<All...> elements) {
  Table table{};
  std::size_t row = 0;
  (fill_row<Arch, All>(table, row++, elements), ...);
  [&]<std::size_t... format>(std::index_sequence<format...>) {
    ((table.encode[format] = encode_blocks<Arch, static_cast<BlockFormat>(format)>), ...);
    ((table.decode[format] = decode_blocks<Arch, static_cast<BlockFormat>(format)>), ...);
    ((table.left_by[format] = blocks_leave<Arch, static_cast<BlockFormat>(format)>), ...);
  }(std::make_index_sequence<kBlockFormatCount>());
  return table;
}

/// Makes the table of kernels for `Arch`, which must be the instruction set that the including unit is compiled for.
template <class Arch>
constexpr Table make_table() {
  return make_table<Arch>(Elements());
}

}  // namespace
}  // namespace ringlet::simd
