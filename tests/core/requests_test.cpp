#include <catch2/catch.hpp>
#include <cmath>

#include "core/engine/requests.hpp"

using namespace ringlet;
using Catch::Contains;

namespace {

const WorldOptions kOptions = [] {
  WorldOptions options;
  options.rank = 1;
  options.size = 4;
  return options;
}();

template <class T>
void check_invalid(const Result<T>& task, const Catch::Matchers::StdString::ContainsMatcher& text) {
  CHECK(task.status().code() == Errc::invalid_argument);
  CHECK_THAT(task.status().text(), text);
}

struct Arrays {
  std::vector<float> f10 = std::vector<float>(10);
  std::vector<float> g10 = std::vector<float>(10);
  std::vector<float> f3 = std::vector<float>(3);
  std::vector<std::int32_t> i10 = std::vector<std::int32_t>(10);
  TensorView absent{nullptr, DType::f32, 5};
  TensorView odd{f10.data(), static_cast<DType>(99), 5};
  TensorView huge{f10.data(), DType::f32, Shape{1LL << 40, 1LL << 40}};
};

}  // namespace

TEST_CASE_METHOD(Arrays, "wrong arguments of an all-reduce") {
  const auto all_reduce = [](ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::sum, double divisor = 1) {
    return make_all_reduce(op, in, out, divisor, kOptions);
  };
  CHECK(all_reduce(f10, f10).ok());
  CHECK(all_reduce(f10, g10, ReduceOp::sum, 4).ok());
  check_invalid(all_reduce(f10, f3), Contains("10"));
  check_invalid(all_reduce(f10, f3), Contains("3"));
  check_invalid(all_reduce(f10, i10), Contains("i32"));
  check_invalid(all_reduce(absent, f10), Contains("5 elements"));
  check_invalid(all_reduce(f10, absent), Contains("output"));
  check_invalid(all_reduce(odd, odd), Contains("99"));
  check_invalid(all_reduce(huge, huge), Contains("1099511627776"));
  check_invalid(all_reduce(f10, g10, static_cast<ReduceOp>(7)), Contains("7"));
  const TensorView shifted(f10.data() + 1, DType::f32, 9);
  check_invalid(all_reduce(ConstTensorView(f10.data(), DType::f32, 9), shifted), Contains("overlap"));
  check_invalid(all_reduce(i10, i10, ReduceOp::sum, 4), Contains("i32"));
  check_invalid(all_reduce(f10, f10, ReduceOp::max, 4), Contains("max"));
  check_invalid(all_reduce(f10, f10, ReduceOp::sum, 0), Contains("0"));
  check_invalid(all_reduce(f10, f10, ReduceOp::sum, std::nan("")), Contains("nan"));
  check_invalid(all_reduce(f10, f10, ReduceOp::sum, INFINITY), Contains("inf"));
}

TEST_CASE_METHOD(Arrays, "wrong arguments of a reduce-scatter") {
  const auto scatter = [](ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::sum) {
    return make_reduce_scatter(op, in, out, kOptions);
  };
  CHECK(scatter(f10, f3).ok());
  check_invalid(scatter(f10, g10), Contains("3 rows"));
  CHECK(scatter(f10, f3, ReduceOp::prod).ok());
  check_invalid(scatter(f10, f3, static_cast<ReduceOp>(7)), Contains("operation number 7"));
  check_invalid(scatter(ConstTensorView(f10.data(), DType::f32, Shape{}), f3), Contains("scalar"));
  check_invalid(scatter(f10, TensorView(f10.data() + 3, DType::f32, 3)), Contains("overlap"));
  check_invalid(scatter(i10, f3), Contains("i32"));
}

TEST_CASE_METHOD(Arrays, "wrong arguments of an all-gather, a broadcast and messages") {
  std::vector<float> f40(40);
  CHECK(make_all_gather(f10, f40, kOptions).ok());
  CHECK(make_all_gather(ConstTensorView(f40.data() + 10, DType::f32, 10), f40, kOptions).ok());
  check_invalid(make_all_gather(f10, g10, kOptions), Contains("40"));
  check_invalid(make_all_gather(ConstTensorView(f40.data() + 11, DType::f32, 10), f40, kOptions), Contains("overlap"));
  CHECK(make_broadcast(f10, 3, kOptions).ok());
  check_invalid(make_broadcast(f10, 4, kOptions), Contains("rank 4"));
  check_invalid(make_broadcast(f10, -1, kOptions), Contains("rank -1"));
  check_invalid(make_broadcast(absent, 0, kOptions), Contains("null"));
  CHECK(make_send(f10, 0, kOptions).ok());
  CHECK(make_receive(f10, 0, kOptions).ok());
  check_invalid(make_send(f10, 4, kOptions), Contains("rank 4"));
  check_invalid(make_send(f10, 1, kOptions), Contains("itself"));
  check_invalid(make_receive(f10, 1, kOptions), Contains("itself"));
  check_invalid(make_receive(f10, -2, kOptions), Contains("rank -2"));
  check_invalid(make_receive(odd, 0, kOptions), Contains("99"));
}

TEST_CASE_METHOD(Arrays, "wrong arguments of collectives with counts") {
  using Rows = std::vector<std::int64_t>;
  const Rows counts{4, 3, 0, 3};
  const ConstTensorView three(f3.data(), DType::f32, 3);
  const auto gather = [&](ConstTensorView in, TensorView out, const Rows& rows) { return make_all_gather_v(in, out, rows, kOptions); };
  CHECK(gather(three, f10, counts).ok());
  CHECK(gather(ConstTensorView(f10.data() + 4, DType::f32, 3), f10, counts).ok());
  check_invalid(gather(ConstTensorView(f10.data() + 3, DType::f32, 3), f10, counts), Contains("overlap"));
  check_invalid(gather(three, f10, {4, 3, 3}), Contains("3 entries, but the group has 4 ranks"));
  check_invalid(gather(three, f10, {}), Contains("0 entries"));
  check_invalid(gather(three, f10, {4, 3, -1, 4}), Contains("rank 2 -1 rows"));
  check_invalid(gather(three, f10, {INT64_MAX, 3, 0, 1}), Contains("more rows"));
  check_invalid(gather(three, f10, {INT64_MAX / 2, 3, 0, 1}), Contains("more than memory can hold"));
  check_invalid(gather(three, f10, {4, 3, 0, 4}), Contains("(10,) has 10 rows, but counts add up to 11"));
  check_invalid(gather(three, f10, {3, 4, 0, 3}), Contains("rank 1's part is 4 rows, 4 elements"));
  check_invalid(gather(three, TensorView(f10.data(), DType::f32, Shape{}), counts), Contains("scalar"));
  check_invalid(gather(three, i10, counts), Contains("i32"));

  const auto scatter = [&](ReduceOp op, TensorView out, const Rows& rows) { return make_reduce_scatter_v(op, f10, out, rows, kOptions); };
  CHECK(scatter(ReduceOp::sum, f3, counts).ok());
  CHECK(scatter(ReduceOp::prod, f3, counts).ok());
  check_invalid(scatter(ReduceOp::sum, f3, {4, 2, 0, 4}), Contains("2 rows"));
  check_invalid(scatter(ReduceOp::sum, f3, {4, 3, 0, 4}), Contains("11"));
  check_invalid(scatter(ReduceOp::sum, TensorView(f10.data(), DType::f32, 3), counts), Contains("overlap"));
}

TEST_CASE_METHOD(Arrays, "wrong arguments of a reduce, a gather and a scatter") {
  std::vector<float> f12(12);
  CHECK(make_reduce(ReduceOp::prod, f10, f10, 1, kOptions).ok());
  CHECK(make_reduce(ReduceOp::sum, f10, absent, 0, kOptions).ok());
  CHECK(make_reduce(ReduceOp::sum, f10, i10, 0, kOptions).value().output.empty());
  check_invalid(make_reduce(ReduceOp::sum, f10, f3, 1, kOptions), Contains("10 elements but the root's output has 3"));
  check_invalid(make_reduce(ReduceOp::sum, f10, i10, 1, kOptions), Contains("i32"));
  check_invalid(make_reduce(ReduceOp::sum, f10, f10, 4, kOptions), Contains("rank 4"));
  check_invalid(make_reduce(static_cast<ReduceOp>(9), f10, f10, 1, kOptions), Contains("9"));
  check_invalid(
      make_reduce(ReduceOp::sum, ConstTensorView(f10.data(), DType::f32, 9), TensorView(f10.data() + 1, DType::f32, 9), 1, kOptions),
      Contains("overlap"));

  CHECK(make_gather(f3, f12, 1, kOptions).ok());
  CHECK(make_gather(ConstTensorView(f12.data() + 3, DType::f32, 3), f12, 1, kOptions).ok());
  CHECK(make_gather(f3, absent, 0, kOptions).ok());
  check_invalid(make_gather(f3, f10, 1, kOptions), Contains("10 elements; 4 ranks of 3 need 12"));
  check_invalid(make_gather(ConstTensorView(f12.data() + 2, DType::f32, 3), f12, 1, kOptions), Contains("overlap"));
  check_invalid(make_gather(f3, f12, -1, kOptions), Contains("rank -1"));

  CHECK(make_scatter(f12, f3, 1, kOptions).ok());
  CHECK(make_scatter(f12, TensorView(f12.data() + 3, DType::f32, 3), 1, kOptions).ok());
  CHECK(make_scatter(absent, f3, 0, kOptions).ok());
  check_invalid(make_scatter(f10, f3, 1, kOptions), Contains("10 rows of input (10,) do not divide by 4 ranks; use scatter_v"));
  check_invalid(make_scatter(f12, g10, 1, kOptions), Contains("12 elements; 4 ranks of 10 need 40"));
  check_invalid(make_scatter(f12, TensorView(f12.data(), DType::f32, 3), 1, kOptions), Contains("overlap"));
  check_invalid(make_scatter(absent, f3, 1, kOptions), Contains("null"));

  const std::vector<std::int64_t> counts{4, 3, 0, 3};
  CHECK(make_scatter_v(f10, f3, counts, 1, kOptions).ok());
  CHECK(make_gather_v(f3, f10, counts, 1, kOptions).ok());
  CHECK(make_gather_v(f3, {}, counts, 2, kOptions).ok());
  check_invalid(make_gather_v(f10, f10, counts, 1, kOptions), Contains("3 rows"));
  check_invalid(make_scatter_v(f12, f3, counts, 1, kOptions), Contains("12 rows, but counts add up to 10"));
}

TEST_CASE_METHOD(Arrays, "wrong arguments of an all-to-all") {
  std::vector<float> f8(8), g8(8);
  CHECK(make_all_to_all(f8, g8, kOptions).ok());
  check_invalid(make_all_to_all(f8, f8, kOptions), Contains("in place"));
  check_invalid(make_all_to_all(f10, g10, kOptions), Contains("do not divide by 4 ranks; use all_to_all_v"));
  check_invalid(make_all_to_all(f8, g10, kOptions), Contains("8 elements but output has 10"));
  check_invalid(make_all_to_all(ConstTensorView(f8.data(), DType::f32, Shape{}), g8, kOptions), Contains("scalar"));

  using Rows = std::vector<std::int64_t>;
  const auto exchange = [&](TensorView out, const Rows& sent, const Rows& received) {
    return make_all_to_all_v(f8, out, sent, received, kOptions);
  };
  CHECK(exchange(g10, {1, 3, 0, 4}, {5, 3, 2, 0}).ok());
  check_invalid(exchange(g10, {1, 3, 0, 5}, {5, 3, 2, 0}), Contains("8 rows, but send_counts add up to 9"));
  check_invalid(exchange(g10, {1, 3, 0, 4}, {5, 3, 2, 1}), Contains("10 rows, but receive_counts add up to 11"));
  check_invalid(exchange(g10, {1, 3, 0, 4}, {4, 4, 2, 0}), Contains("sends itself 3 rows but receives 4"));
  check_invalid(exchange(g10, {1, 3, 4}, {4, 4, 2, 0}), Contains("send_counts has 3 entries"));
  check_invalid(exchange(TensorView(g10.data(), DType::f32, Shape{5, 2}), {1, 3, 0, 4}, {0, 3, 2, 0}), Contains("(5, 2) 2"));
  check_invalid(exchange(f8, {1, 3, 0, 4}, {5, 3, 0, 0}), Contains("in place"));
}
