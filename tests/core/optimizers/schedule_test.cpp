#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <ringlet/error.hpp>
#include <ringlet/schedules.hpp>

using namespace ringlet;
using Catch::Matchers::Contains;

TEST_CASE("exponential and step decay") {
  const Schedule exponential = exponential_decay(0.1, 0.9);
  CHECK(exponential(0) == 0.1);
  for (std::uint64_t step : {1, 4, 17, 1'000}) CHECK(exponential(step) == Approx(0.1 * std::pow(0.9, static_cast<double>(step))));
  CHECK(exponential(std::numeric_limits<std::uint64_t>::max()) == 0);
  const Schedule steps = step_decay(0.1, 0.9, 10);
  CHECK(steps(9) == 0.1);
  CHECK(steps(10) == Approx(0.09));
  CHECK(steps(20) == Approx(0.081));
}

TEST_CASE("cosine decay is the cosine, to the last bits") {
  const Schedule schedule = cosine_decay(1.0, 1'000, 0.25);
  for (std::uint64_t step = 0; step <= 1'000; ++step) {
    const double expected = 0.25 + 0.75 * 0.5 * (1 + std::cos(std::acos(-1.0) * static_cast<double>(step) / 1'000));
    CHECK(schedule(step) == Approx(expected).epsilon(1e-15).margin(1e-15));
  }
  CHECK(schedule(0) == 1.0);
  CHECK(schedule(1'000) == 0.25);
  CHECK(schedule(5'000) == 0.25);
  CHECK(cosine_decay(0.1, 1'000)(4) == Approx(0.0999961).epsilon(1e-6));
}

TEST_CASE("a linear schedule ends where it should") {
  const Schedule schedule = linear_schedule(0.0, 0.1, 100);
  CHECK(schedule(0) == 0.0);
  CHECK(schedule(50) == Approx(0.05));
  CHECK(schedule(100) == 0.1);
  CHECK(schedule(101) == 0.1);
  CHECK(linear_schedule(1.0, 0.0, 4)(1) == 0.75);
}

TEST_CASE("joined schedules each count from their own beginning") {
  const Schedule schedule =
      join_schedules({linear_schedule(0.0, 1.0, 10), [](std::uint64_t step) { return 100.0 + static_cast<double>(step); },
                      [](std::uint64_t) { return -1.0; }},
                     {10, 20});
  CHECK(schedule(0) == 0.0);
  CHECK(schedule(9) == Approx(0.9));
  CHECK(schedule(10) == 100.0);
  CHECK(schedule(19) == 109.0);
  CHECK(schedule(20) == -1.0);
  // MLX's own example has this rate in step 11, after ten steps of warm-up and one of cosine decay.
  CHECK(join_schedules({linear_schedule(0, 1e-1, 10), cosine_decay(1e-1, 200)}, {10})(11) == Approx(0.0999938).epsilon(1e-6));
  CHECK(join_schedules({linear_schedule(0.0, 1.0, 10)}, {})(5) == 0.5);
}

TEST_CASE("schedules that cannot be are refused") {
  const Schedule one = linear_schedule(0, 1, 1);
  CHECK_THROWS_WITH(linear_schedule(0, 1, 0), Contains("steps") && Contains("0"));
  CHECK_THROWS_AS(step_decay(1, 0.5, 0), InvalidArgument);
  CHECK_THROWS_AS(cosine_decay(1, 0), InvalidArgument);
  CHECK_THROWS_AS(exponential_decay(std::numeric_limits<double>::infinity(), 1), InvalidArgument);
  CHECK_THROWS_WITH(join_schedules({}, {}), Contains("at least one"));
  CHECK_THROWS_WITH(join_schedules({one, one}, {}), Contains("0 boundaries") && Contains("2 schedules"));
  CHECK_THROWS_AS(join_schedules({one, Schedule()}, {3}), InvalidArgument);
  CHECK_THROWS_WITH(join_schedules({one, one, one}, {5, 4}), Contains("4") && Contains("5"));
}
