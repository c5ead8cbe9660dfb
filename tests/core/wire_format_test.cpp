// Tests of how tensors are written as blocks, and read, a piece at a time.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/gradients/wire_format.hpp"

using namespace ringlet;

namespace {

const simd::Kernels& kernels() { return *simd::find("scalar"); }

std::vector<std::byte> blocks_of(ConstTensorView values, BlockFormat format, double factor, const Feedback& feedback = {}) {
  std::vector<std::byte> blocks(WireFormat{DType::f32, format}.bytes(values.count()));
  write_blocks(format, values, blocks.data(), factor, kernels(), feedback);
  return blocks;
}

/// A matrix of these extents that is the other way round in its memory.
TensorView turned(Tensor& memory, std::int64_t rows, std::int64_t columns) {
  return {memory.view().data(), memory.dtype(), Shape{rows, columns}, std::array<std::int64_t, 2>{1, std::max<std::int64_t>(rows, 1)}};
}

}  // namespace

TEST_CASE("a tensor with gaps is written as blocks, and read, as its copy without them is") {
  const DType dtype = GENERATE(DType::f16, DType::bf16, DType::f32, DType::f64);
  const BlockFormat format = GENERATE(BlockFormat::int8, BlockFormat::int4);
  const double factor = GENERATE(1.0, 0.25);
  // More than one piece, and no whole number of blocks.
  const auto [rows, columns] = GENERATE(std::pair(61, 47), std::pair(1, 5), std::pair(0, 3));
  CAPTURE(name_of(dtype), name_of(format), factor, rows, columns);
  Tensor memory(dtype, Shape{rows * columns});
  std::vector<float> numbers(memory.count());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i * i));
  kernels().cast(DType::f32, dtype)(memory.view().data(), reinterpret_cast<const std::byte*>(numbers.data()), numbers.size());
  const TensorView gaps = turned(memory, rows, columns);
  const Tensor copied = Tensor::copy_of(gaps);
  std::vector<float> add(memory.count()), left(memory.count()), left_of_copy(memory.count());
  std::iota(add.begin(), add.end(), -3.0F);
  const auto blocks = blocks_of(gaps, format, factor, {add.data(), left.data()});
  CHECK(blocks == blocks_of(copied, format, factor, {add.data(), left_of_copy.data()}));
  CHECK(left == left_of_copy);
  CHECK(blocks_of(gaps, format, factor) == blocks_of(copied, format, factor));

  Tensor read(dtype, Shape{rows * columns}), read_without_gaps(dtype, Shape{rows, columns});
  read_blocks(format, blocks.data(), turned(read, rows, columns), kernels());
  read_blocks(format, blocks.data(), read_without_gaps, kernels());
  const Tensor compared = Tensor::copy_of(turned(read, rows, columns));
  CHECK(std::equal(compared.view().data(), compared.view().data() + compared.view().bytes(), read_without_gaps.view().data()));
}

TEST_CASE("what counts nothing may be anything: its blocks are zeros and what is left of the steps before") {
  const BlockFormat format = GENERATE(BlockFormat::int8, BlockFormat::int4);
  std::vector<float> values(1'500, std::numeric_limits<float>::infinity()), zeros(values.size()), add(values.size()), left(values.size());
  values[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(blocks_of(values, format, 0) == blocks_of(zeros, format, 1));
  for (std::size_t i = 0; i < add.size(); ++i) add[i] = std::sin(static_cast<float>(i));
  CHECK(blocks_of(values, format, 0, {add.data(), left.data()}) == blocks_of(add, format, 1));
}
