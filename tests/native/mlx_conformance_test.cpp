#include <catch2/catch.hpp>
#include <ringlet/ringlet.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

// Checks MLX's mx.distributed, call by call: what a program written for it may rely on. Names say where Ringlet differs on purpose.

using namespace ringlet;
using test::expect;
using test::failure_of;

namespace {

template <class T>
T number(int value) {
  if constexpr (std::same_as<T, Float16>) {
    constexpr std::uint16_t kBits[] = {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
    return {kBits[value]};
  } else if constexpr (std::same_as<T, BFloat16>) {
    constexpr std::uint16_t kBits[] = {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0};
    return {kBits[value]};
  } else if constexpr (std::same_as<T, Complex64>) {
    return {static_cast<float>(value), static_cast<float>(-value)};
  } else {
    return static_cast<T>(value);
  }
}

/// Makes the calls in one dtype on three ranks, each with the number rank + 1.
template <class T>
void check_dtype(Group& world) {
  const std::string name(name_of(dtype_of<T>));
  const Shape shape{2, 3};
  const auto own = number<T>(world.rank() + 1);
  const auto filled = [&] {
    Tensor tensor(dtype_of<T>, shape);
    std::fill_n(reinterpret_cast<T*>(tensor.view().data()), tensor.count(), own);
    return tensor;
  };
  const auto is = [&](const Tensor& tensor, const Shape& wanted, T value) {
    const T* values = reinterpret_cast<const T*>(tensor.view().data());
    return tensor.dtype() == dtype_of<T> && tensor.shape() == wanted &&
           std::count(values, values + tensor.count(), value) == static_cast<std::ptrdiff_t>(tensor.count());
  };
  Tensor sum = filled(), highest = filled(), lowest = filled();
  world.all_sum(sum);
  world.all_max(highest);
  world.all_min(lowest);
  expect(is(sum, shape, number<T>(6)), "all_sum of " + name);
  expect(is(highest, shape, number<T>(3)), "all_max of " + name);
  expect(is(lowest, shape, number<T>(1)), "all_min of " + name);
  const Tensor all = world.all_gather(filled());
  expect(all.dtype() == dtype_of<T> && all.shape() == Shape{6, 3}, "all_gather of " + name);
  for (std::size_t i = 0; i < all.count(); ++i)
    expect(reinterpret_cast<const T*>(all.view().data())[i] == number<T>(static_cast<int>(i / 6) + 1), "rows of all_gather of " + name);
  Tensor rows(dtype_of<T>, Shape{3, 2});
  std::fill_n(reinterpret_cast<T*>(rows.view().data()), rows.count(), own);
  expect(is(world.sum_scatter(rows), Shape{1, 2}, number<T>(6)), "sum_scatter of " + name);
  if (world.rank() == 0) world.send(filled(), 2);
  if (world.rank() == 2) expect(is(world.recv_like(filled(), 0), shape, number<T>(1)), "recv_like of " + name);
}

template <class... Types>
void check_dtypes(Group& world) {
  (check_dtype<Types>(world), ...);
}

bool refused(const std::function<void()>& call, const std::string& wanted) {
  return failure_of<InvalidArgument>(call).find(wanted) != std::string::npos;
}

}  // namespace

TEST_CASE("is_available: a name that nobody knows is false; init refuses it") {
  CHECK(is_available());
  CHECK(is_available("any"));
  CHECK_FALSE(is_available("nccl"));
  CHECK_THROWS_AS(init({.backend = "carrier pigeon"}), InvalidArgument);
}

TEST_CASE("init: one rank where nothing is configured, an error where strict; the first is not remembered, unlike in MLX") {
  CHECK(init().size() == 1);
  CHECK_THROWS_AS(init({.strict = true}), InvalidArgument);
  CHECK(init().rank() == 0);
}

TEST_CASE("every call keeps shape and dtype, in every dtype but bool") {
  test::run_ranks(3, [](Group& world) {
    check_dtypes<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t, Float16,
                 BFloat16, float, double, Complex64>(world);
  });
}

TEST_CASE("all_sum, all_max, all_min: a group of one leaves the values as they are") {
  Group alone;
  std::vector<float> values{3, -1, 2};
  const auto before = values;
  alone.all_sum(values);
  alone.all_max(values);
  alone.all_min(values);
  CHECK(values == before);
}

TEST_CASE("all_gather: axis 0 grows N times, a scalar becomes (N,)") {
  test::run_ranks(3, [](Group& world) {
    const float own = static_cast<float>(world.rank());
    const Tensor scalars = world.all_gather(ConstTensorView(&own, DType::f32, Shape{}));
    expect(scalars.shape() == Shape{3} && scalars.values<float>()[2] == 2, "scalars");
    expect(world.all_gather(Tensor(DType::f32, Shape{4, 5, 2})).shape() == Shape{12, 5, 2}, "three axes");
  });
}

TEST_CASE("all_gather: a group of one gets what it gave; its scalar becomes (1,), in MLX it stays a scalar") {
  Group alone;
  const std::vector<float> values{1, 2, 3};
  const Tensor all = alone.all_gather(values);
  CHECK(all.shape() == Shape{3});
  CHECK(all.values<float>()[2] == 3);
  CHECK(alone.all_gather(Tensor(DType::f32, Shape{})).shape() == Shape{1});
}

TEST_CASE("all_gather: unequal shapes are a MismatchError on all ranks, where MLX does not look") {
  test::run_ranks(2, [](Group& world) {
    const std::string text = failure_of<MismatchError>([&] { (void)world.all_gather(Tensor(DType::f32, Shape{2 + world.rank()})); });
    expect(text.find("rank 0") != std::string::npos && text.find("rank 1") != std::string::npos, text);
  });
}

TEST_CASE("sum_scatter: rank r gets the r-th of N parts of axis 0") {
  test::run_ranks(2, [](Group& world) {
    const std::vector<float> rows{0, 1, 2, 3, 4, 5, 6, 7};
    const Tensor part = world.sum_scatter(ConstTensorView(rows.data(), DType::f32, Shape{4, 2}));
    expect(part.shape() == Shape{2, 2}, "shape");
    expect(part.values<float>()[0] == 8.f * static_cast<float>(world.rank()), "first");
  });
}

TEST_CASE("sum_scatter: rows that do not divide are parts of uneven size, an error in MLX") {
  test::run_ranks(3, [](Group& world) {
    const std::vector<float> rows(8, 1.f);
    const Tensor part = world.sum_scatter(ConstTensorView(rows.data(), DType::f32, Shape{4, 2}));
    expect(part.shape() == Shape{world.rank() == 0 ? 2 : 1, 2}, "shape");
    expect(part.values<float>()[0] == 3, "sum");
  });
}

TEST_CASE("sum_scatter: a scalar is refused, also by a group of one, which in MLX returns it") {
  test::run_ranks(2, [](Group& world) {
    expect(refused([&] { (void)world.sum_scatter(Tensor(DType::f32, Shape{})); }, "scalar"), "scalar");
    world.barrier();
  });
  Group alone;
  CHECK_THROWS_AS(alone.sum_scatter(Tensor(DType::f32, Shape{})), InvalidArgument);
  CHECK(alone.sum_scatter(Tensor(DType::f32, Shape{3, 2})).shape() == Shape{3, 2});
}

TEST_CASE("send, recv: a group of one, and a rank that there is not, are refused") {
  Group alone;
  Tensor values(DType::f32, Shape{2});
  CHECK_THROWS_AS(alone.send(values, 0), InvalidArgument);
  CHECK_THROWS_AS(alone.send(values, 1), InvalidArgument);
  CHECK_THROWS_AS(alone.recv(values, 0), InvalidArgument);
  CHECK_THROWS_AS(alone.recv_like(values, 1), InvalidArgument);
  test::run_ranks(2, [](Group& world) {
    Tensor buffer(DType::f32, Shape{2});
    expect(refused([&] { world.send(buffer, 2); }, "destination is rank 2"), "destination");
    expect(refused([&] { world.send(buffer, -1); }, "destination is rank -1"), "negative destination");
    expect(refused([&] { world.recv(buffer, 2); }, "source is rank 2"), "source");
    expect(refused([&] { world.recv(buffer, -1); }, "source is rank -1"), "negative source");
    world.barrier();
  });
}

TEST_CASE("send, recv: a ball goes to and fro between any two ranks, in MLX's ring between neighbours only") {
  test::run_ranks(4, [](Group& world) {
    for (int a = 0; a < world.size(); ++a)
      for (int b = a + 1; b < world.size(); ++b) {
        std::vector<std::int64_t> ball{0};
        for (int turn = 0; turn < 10; ++turn) {
          const int from = turn % 2 == 0 ? a : b, to = a + b - from;
          if (world.rank() == from) {
            ++ball[0];
            world.send(ball, to);
          }
          if (world.rank() == to) world.recv(ball, from);
        }
        if (world.rank() == a || world.rank() == b) expect(ball[0] == 10, "between " + std::to_string(a) + " and " + std::to_string(b));
      }
  });
}

TEST_CASE("recv: another dtype or shape than was sent is a MismatchError on both, where MLX trusts the receiver") {
  test::run_ranks(2, [](Group& world) {
    const DType dtype = world.rank() == 0 ? DType::f32 : DType::i32;
    for (const Shape& shape : {Shape{4}, Shape{2, 2}}) {
      Tensor values(dtype, shape);
      const std::string text = failure_of<MismatchError>([&] { world.rank() == 0 ? world.send(values, 1) : world.recv(values, 0); });
      expect(text.find("rank 0 sent f32") != std::string::npos && text.find("rank 1 receives i32") != std::string::npos, text);
    }
    world.barrier();
  });
}

TEST_CASE("split: by parity, then by halves; what one group summed is gathered across the other") {
  test::run_ranks(8, [](Group& world) {
    Group parity = world.split(world.rank() % 2).value(), half = world.split(world.rank() / 4).value();
    std::vector<std::int32_t> sum{world.rank()};
    half.all_sum(sum);
    const Tensor across = parity.all_gather(sum);
    const auto sums = across.values<std::int32_t>();
    expect(std::vector<std::int32_t>(sums.begin(), sums.end()) == std::vector<std::int32_t>{6, 6, 22, 22}, "across");
  });
}

TEST_CASE("split: keys give the order, a negative key is the old rank, equal keys keep the old order") {
  test::run_ranks(4, [](Group& world) {
    const int rank = world.rank();
    expect(world.split(0).value().rank() == rank, "no key");
    expect(world.split(0, -1).value().rank() == rank, "a negative key");
    expect(world.split(0, 10 - rank).value().rank() == 3 - rank, "falling keys");
    expect(world.split(0, 5).value().rank() == rank, "equal keys");
    expect(world.split(rank % 2, rank == 0 ? 100 : rank).value().rank() == (rank == 0 || rank == 3 ? 1 : 0), "keys within a colour");
  });
}

TEST_CASE("split: a group of one may be split, which MLX refuses") {
  Group alone;
  CHECK(alone.split(3).value().size() == 1);
  CHECK_FALSE(alone.split(-1).has_value());
}

TEST_CASE("ranks that disagree on a size both get a MismatchError, where MLX returns half a sum and hangs") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(world.rank() == 0 ? 1000 : 2000, 1.f);
    const std::string text = failure_of<MismatchError>([&] { world.all_sum(values); });
    expect(text.find("f32 x 1000") != std::string::npos && text.find("f32 x 2000") != std::string::npos, text);
  });
}
