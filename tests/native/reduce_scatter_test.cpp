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
      const std::map<ReduceOp, I64> all{
          {ReduceOp::sum, {9, 12, 15}}, {ReduceOp::prod, {24, 60, 120}}, {ReduceOp::max, {4, 5, 6}}, {ReduceOp::min, {2, 3, 4}}};
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
