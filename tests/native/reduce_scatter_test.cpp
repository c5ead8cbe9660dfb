#include <catch2/catch.hpp>
#include <map>
#include <ringlet/group.hpp>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using ringlet::test::expect;

TEST_CASE("a reduce-scatter of every operation, even and with counts, blocking and async") {
  test::run_ranks(3, [](Group& world) {
    using I64 = std::vector<std::int64_t>;
    const auto rank = static_cast<std::size_t>(world.rank());
    for (const std::size_t scale : {std::size_t{1}, std::size_t{100'000}}) {
      I64 values(3 * scale);
      // Three neighbours hold 2, 3 and 4 on the first rank, 3, 4 and 5 on the second, and 4, 5 and 6 on the third.
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i % 3 + rank + 2);
      const std::map<ReduceOp, I64> all{{ReduceOp::sum, {9, 12, 15}},  {ReduceOp::prod, {24, 60, 120}}, {ReduceOp::max, {4, 5, 6}},
                                        {ReduceOp::min, {2, 3, 4}},    {ReduceOp::bit_and, {0, 0, 4}},  {ReduceOp::bit_or, {7, 7, 7}},
                                        {ReduceOp::bit_xor, {5, 2, 7}}};
      for (const auto& [op, expected] : all) {
        const auto check = [&, &of_three = expected](const I64& part, std::size_t first, const char* what) {
          for (std::size_t i = 0; i < part.size(); ++i) expect(part[i] == of_three[(first + i) % 3], what);
        };
        I64 part(scale);
        world.reduce_scatter(op, values, part);
        check(part, rank * scale, "reduce_scatter");
        part.assign(scale, 0);
        world.reduce_scatter_async(op, values, part).wait();
        check(part, rank * scale, "reduce_scatter_async");
        const auto rows = static_cast<std::int64_t>(scale);
        const I64 counts{0, 2 * rows, rows};
        const std::size_t first = rank == 2 ? 2 * scale : 0;
        I64 own(static_cast<std::size_t>(counts[rank]));
        world.reduce_scatter_v(op, values, own, counts);
        check(own, first, "reduce_scatter_v");
        own.assign(own.size(), 0);
        world.reduce_scatter_v_async(op, values, own, counts).wait();
        check(own, first, "reduce_scatter_v_async");
      }
    }
  });
}

TEST_CASE("a mean in parts and to one rank, even and with counts, blocking and async, of f16 whose sum overflows") {
  test::run_ranks(3, [](Group& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    for (const std::size_t scale : {std::size_t{1}, std::size_t{100'000}}) {
      // 60,000, 50,000 and 40,000, in every row.
      const std::vector<Float16> values(3 * scale, Float16{std::array<std::uint16_t, 3>{0x7b53, 0x7a1a, 0x78e2}[rank]});
      const Float16 mean{0x7a1a};
      const auto check = [&](const std::vector<Float16>& part, const char* what) {
        for (const Float16& element : part) expect(element == mean, what);
      };
      std::vector<Float16> part(scale);
      world.mean_scatter(values, part);
      check(part, "mean_scatter");
      part.assign(scale, Float16{});
      world.mean_scatter_async(values, part).wait();
      check(part, "mean_scatter_async");
      const auto rows = static_cast<std::int64_t>(scale);
      const std::vector<std::int64_t> counts{0, 2 * rows, rows};
      std::vector<Float16> own(static_cast<std::size_t>(counts[rank]));
      world.mean_scatter_v(values, own, counts);
      check(own, "mean_scatter_v");
      own.assign(own.size(), Float16{});
      world.mean_scatter_v_async(values, own, counts).wait();
      check(own, "mean_scatter_v_async");
      std::vector<Float16> all(values.size(), mean);
      world.reduce_mean(values, all, 1);
      check(all, "reduce_mean");
      all.assign(all.size(), rank == 2 ? Float16{} : mean);
      world.reduce_mean_async(values, all, 2).wait();
      check(all, "reduce_mean_async");
    }
  });
}

TEST_CASE("what cannot be reduced is told by its dtype and operation") {
  Group alone;
  std::vector<float> values(4), part(4);
  std::vector<std::int32_t> whole(4), whole_part(4);
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(alone.all_reduce(ReduceOp::bit_xor, values, values), Contains("all_reduce: bit_xor of f32"));
  CHECK_THROWS_WITH(alone.reduce(ReduceOp::bit_or, values, values, 0), Contains("reduce: bit_or of f32"));
  CHECK_THROWS_WITH(alone.reduce_scatter(ReduceOp::bit_and, values, part), Contains("reduce_scatter: bit_and of f32"));
  CHECK_THROWS_WITH(alone.mean_scatter(whole, whole_part), Contains("mean_scatter: a mean of i32"));
  CHECK_THROWS_WITH(alone.reduce_mean(whole, whole, 0), Contains("reduce_mean: a mean of i32"));
  CHECK_THROWS_WITH(alone.all_mean(whole, whole), Contains("all_mean: a mean of i32"));
}
