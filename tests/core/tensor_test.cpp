#include <dlpack/dlpack.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <numeric>
#include <ringlet/dlpack.hpp>
#include <ringlet/error.hpp>
#include <ringlet/tensor.hpp>
#include <span>
#include <type_traits>

#include "core/base/flat.hpp"
#include "sim/sim_random.hpp"

using namespace ringlet;
using Catch::Matchers::Contains;

namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

template <class View>
std::vector<float> packed(View view) {
  const Tensor copy = Tensor::copy_of(view);
  const auto values = copy.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a view's bytes are as constant as its elements") {
  STATIC_REQUIRE(std::is_same_v<TensorView::Byte, std::byte>);
  STATIC_REQUIRE(std::is_same_v<ConstTensorView::Byte, const std::byte>);
}

TEST_CASE("a transposed view packs in its own order") {
  std::vector<float> values = counted(6);
  const TensorView transposed(values.data(), DType::f32, Shape{3, 2}, std::array<std::int64_t, 2>{1, 3});
  CHECK_FALSE(transposed.contiguous());
  CHECK(packed(transposed) == std::vector<float>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("strides that leave no gaps are contiguous") {
  std::vector<float> values = counted(6);
  CHECK(TensorView(values.data(), DType::f32, Shape{2, 3}, std::array<std::int64_t, 2>{3, 1}).contiguous());
  // The stride of an axis of one element does not matter.
  CHECK(TensorView(values.data(), DType::f32, Shape{1, 6}, std::array<std::int64_t, 2>{77, 1}).contiguous());
  CHECK(TensorView(values.data(), DType::f32, Shape{0, 3}, std::array<std::int64_t, 2>{5, 7}).contiguous());
  CHECK(TensorView(values.data(), DType::f32, Shape{}, std::span<const std::int64_t>{}).contiguous());
}

TEST_CASE("negative strides and repeated elements can be read") {
  std::vector<float> values = counted(3);
  CHECK(packed(ConstTensorView(values.data() + 2, DType::f32, Shape{3}, std::array<std::int64_t, 1>{-1})) == std::vector<float>{2, 1, 0});
  CHECK(packed(ConstTensorView(values.data(), DType::f32, Shape{2, 2}, std::array<std::int64_t, 2>{0, 1})) ==
        std::vector<float>{0, 1, 0, 1});
  CHECK_THROWS_WITH(TensorView(values.data(), DType::f32, Shape{2}, std::array<std::int64_t, 2>{1, 1}), Contains("2 strides"));
}

TEST_CASE("a view of which elements share memory can be read, but not written") {
  std::vector<float> values(200);
  const auto positions = [](const Shape& shape, const std::array<std::int64_t, 3>& strides) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < shape[0]; ++i)
      for (std::int64_t j = 0; j < shape[1]; ++j)
        for (std::int64_t k = 0; k < shape[2]; ++k) all.push_back(i * strides[0] + j * strides[1] + k * strides[2]);
    return all;
  };
  SimRandom random(1);
  int shared = 0, apart = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    std::array<std::int64_t, 3> extents{}, strides{};
    for (auto& extent : extents) extent = static_cast<std::int64_t>(random.below(4));
    for (auto& stride : strides) stride = static_cast<std::int64_t>(random.below(25)) - 12;
    const Shape shape{std::span<const std::int64_t>(extents)};
    CAPTURE(extents, strides);
    std::vector<std::int64_t> all = positions(shape, strides);
    std::sort(all.begin(), all.end());
    const bool share = std::adjacent_find(all.begin(), all.end()) != all.end();
    const ConstTensorView read(values.data() + 100, DType::f32, shape, strides);
    if (share) {
      ++shared;
      REQUIRE(read.elements_may_overlap());
      REQUIRE_THROWS_WITH(TensorView(values.data() + 100, DType::f32, shape, strides),
                          Contains("share memory") && Contains("strides of ("));
    } else if (!read.elements_may_overlap()) {
      ++apart;
      REQUIRE_NOTHROW(TensorView(values.data() + 100, DType::f32, shape, strides));
    }
  }
  CHECK(shared > 100);
  CHECK(apart > 100);
  CHECK_THROWS_WITH(TensorView(values.data(), DType::f32, Shape{2, 2}, std::array<std::int64_t, 2>{0, 1}),
                    Contains("shape (2, 2) with strides of (0, 1) elements"));
  CHECK_THROWS_WITH(TensorView(values.data(), DType::f32, Shape{3, 2}, std::array<std::int64_t, 2>{1, 1}), Contains("share memory"));
  constexpr std::int64_t kFar = std::int64_t{1} << 62;  // four of it are 0 in 64 bits
  CHECK_THROWS_WITH(TensorView(values.data(), DType::f32, Shape{5, 2}, std::array<std::int64_t, 2>{kFar, kFar + 1}),
                    Contains("share memory"));
  // An axis of one element, and a view without elements, may have any stride.
  CHECK_FALSE(TensorView(values.data(), DType::f32, Shape{2, 1}, std::array<std::int64_t, 2>{1, 0}).elements_may_overlap());
  CHECK_FALSE(TensorView(values.data(), DType::f32, Shape{0, 2}, std::array<std::int64_t, 2>{0, 0}).elements_may_overlap());
}

TEST_CASE("random strided views copy there and back") {
  const auto seed = GENERATE(range(0, 200));
  CAPTURE(seed);
  SimRandom random(static_cast<std::uint64_t>(seed));
  // The tensor has random extents. Its axes are in memory in random order, with gaps.
  const std::size_t axes = random.below(5);
  std::vector<std::int64_t> extents(axes), strides(axes);
  std::vector<std::size_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = axes; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::int64_t span = 1;
  for (const std::size_t axis : order) {
    extents[axis] = static_cast<std::int64_t>(random.below(5));
    strides[axis] = span;
    span *= std::max<std::int64_t>(1, extents[axis]) + static_cast<std::int64_t>(random.below(2));
  }
  std::vector<float> memory = counted(static_cast<std::size_t>(span));
  const Shape shape{std::span<const std::int64_t>(extents)};
  const TensorView view(memory.data(), DType::f32, shape, strides);

  std::vector<float> expected;
  std::vector<std::int64_t> index(axes);
  for (std::size_t n = 0; n < shape.count(); ++n) {
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < axes; ++axis) position += index[axis] * strides[axis];
    expected.push_back(memory[static_cast<std::size_t>(position)]);
    for (std::size_t axis = axes; axis-- > 0;) {
      if (++index[axis] < extents[axis]) break;
      index[axis] = 0;
    }
  }
  Tensor copied = Tensor::copy_of(view);
  CHECK(std::equal(expected.begin(), expected.end(), copied.values<float>().begin(), copied.values<float>().end()));

  const std::vector<float> before = memory;
  for (float& value : copied.values<float>()) value += 1000;
  copy(copied, view);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    CHECK((memory[i] == before[i] || memory[i] == before[i] + 1000));
    changed += memory[i] != before[i];
  }
  CHECK(changed == shape.count());
}

TEST_CASE("an owned tensor is zero, aligned and typed") {
  Tensor tensor(DType::f32, Shape{3, 5});
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.view().data()) % 64 == 0);
  for (const float value : tensor.values<float>()) CHECK(value == 0.f);
  CHECK_THROWS_WITH(tensor.values<double>(), Contains("f32") && Contains("f64"));
  CHECK_THROWS_WITH(Tensor(static_cast<DType>(99), Shape{1}), Contains("99"));
  CHECK_THROWS_AS(Tensor(DType::f64, Shape({INT64_MAX, 2})), InvalidArgument);
  const Tensor moved = std::move(tensor);
  CHECK(moved.count() == 15);
  CHECK(tensor.count() == 0);
}

TEST_CASE("a copy needs the same dtype and shape") {
  Tensor a(DType::f32, Shape{2});
  CHECK_THROWS_WITH(copy(a, Tensor(DType::f32, Shape{3})), Contains("(2,)") && Contains("(3,)"));
  CHECK_THROWS_WITH(copy(a, Tensor(DType::f64, Shape{2})), Contains("f64"));
}

TEST_CASE("DLPack tensors are viewed where they lie") {
  std::vector<float> values = counted(8);
  std::int64_t shape[] = {2, 2};
  std::int64_t strides[] = {4, 2};
  DLTensor tensor{};
  tensor.data = values.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 2;
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape;
  tensor.byte_offset = sizeof(float);
  SECTION("strided") {
    tensor.strides = strides;
    CHECK(packed(view_of(tensor)) == std::vector<float>{1, 3, 5, 7});
  }
  SECTION("without strides it is contiguous") {
    CHECK(view_of(tensor).contiguous());
    CHECK(reinterpret_cast<float*>(view_of(tensor).data()) == values.data() + 1);
  }
  SECTION("other devices and types are refused") {
    tensor.device.device_type = kDLCUDA;
    CHECK_THROWS_WITH(view_of(tensor), Contains("device type 2"));
    tensor.device.device_type = kDLCPU;
    tensor.dtype = {kDLComplex, 32, 1};
    CHECK_THROWS_WITH(view_of(tensor), Contains("32 bits"));
    tensor.dtype = {kDLFloat, 32, 4};
    CHECK_THROWS_WITH(view_of(tensor), Contains("4 lanes"));
  }
}

TEST_CASE("any part of a tensor with gaps is gathered, and scattered, as that part of its copy") {
  using Strides = std::array<std::int64_t, 3>;
  const Strides strides = GENERATE(Strides{20, 5, 1}, Strides{40, 10, 2}, Strides{20, 1, 4}, Strides{1, 3, 12}, Strides{7, 21, 1});
  std::vector<float> values = counted(120);
  const TensorView view(values.data(), DType::f32, Shape{3, 4, 5}, strides);
  const std::vector<float> all = packed(view);
  for (std::size_t first = 0; first <= all.size(); ++first)
    for (std::size_t last = first; last <= all.size(); ++last) {
      std::vector<float> part(last - first);
      gather(view, first * sizeof(float), std::as_writable_bytes(std::span(part)));
      if (!std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first))) FAIL(first << " to " << last);
      std::vector<float> target(120, -1), wanted(60, -1);
      const TensorView written(target.data(), DType::f32, Shape{3, 4, 5}, strides);
      scatter(std::as_bytes(std::span<const float>(part)), written, first * sizeof(float));
      std::copy(part.begin(), part.end(), wanted.begin() + static_cast<std::ptrdiff_t>(first));
      if (packed(written) != wanted) FAIL(first << " to " << last << " scattered");
    }
}
