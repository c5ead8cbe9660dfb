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
  check_invalid(scatter(f10, f3, ReduceOp::prod), Contains("prod"));
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
