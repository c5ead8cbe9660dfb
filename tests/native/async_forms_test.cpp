#include <catch2/catch.hpp>
#include <vector>

#include "tests/native/ranks.hpp"

using namespace ringlet;

namespace {

using Values = std::vector<std::int32_t>;
using Counts = std::vector<std::int64_t>;

constexpr int kRanks = 3;
constexpr int kRoot = 1;

/// Calls both forms with outputs of their own. Catch's assertions may not run on several threads at once, so ranks throw.
template <class Blocking, class Started>
void expect_same(const char* name, std::size_t count, const Blocking& blocking, const Started& started) {
  Values expected(count, -1), found(count, -1);
  blocking(expected);
  Work work = started(found);
  work.wait();
  if (!work.done() || found != expected) throw std::runtime_error(std::string(name) + " gives something else when it is asynchronous");
  if (count > 0 && expected == Values(count, -1)) throw std::runtime_error(std::string(name) + " has given nothing");
}

}  // namespace

TEST_CASE("each call's asynchronous form gives what the blocking one gives") {
  test::run_ranks(kRanks, [](Group& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    Values six(6), own(2);
    for (std::size_t i = 0; i < six.size(); ++i) six[i] = static_cast<std::int32_t>(10 * rank + i + 1);
    own = {six[0], six[1]};
    const Counts counts{1, 2, 3};
    const Values uneven(six.begin(), six.begin() + static_cast<std::ptrdiff_t>(counts[rank]));
    const bool root = world.rank() == kRoot;

    expect_same(
        "all_reduce", 6, [&](Values& out) { world.all_reduce(ReduceOp::max, six, out); },
        [&](Values& out) { return world.all_reduce_async(ReduceOp::max, six, out); });
    expect_same(
        "reduce_scatter", 2, [&](Values& out) { world.reduce_scatter(ReduceOp::sum, six, out); },
        [&](Values& out) { return world.reduce_scatter_async(ReduceOp::sum, six, out); });
    expect_same(
        "reduce_scatter_v", uneven.size(), [&](Values& out) { world.reduce_scatter_v(ReduceOp::sum, six, out, counts); },
        [&](Values& out) { return world.reduce_scatter_v_async(ReduceOp::sum, six, out, counts); });
    expect_same(
        "all_gather", 6, [&](Values& out) { world.all_gather(own, out); }, [&](Values& out) { return world.all_gather_async(own, out); });
    expect_same(
        "all_gather_v", 6, [&](Values& out) { world.all_gather_v(uneven, out, counts); },
        [&](Values& out) { return world.all_gather_v_async(uneven, out, counts); });
    expect_same(
        "all_to_all", 6, [&](Values& out) { world.all_to_all(six, out); }, [&](Values& out) { return world.all_to_all_async(six, out); });

    // Only the root receives the result of these.
    expect_same(
        "reduce", root ? 6 : 0, [&](Values& out) { world.reduce(ReduceOp::sum, six, out, kRoot); },
        [&](Values& out) { return world.reduce_async(ReduceOp::sum, six, out, kRoot); });
    expect_same(
        "gather", root ? 6 : 0, [&](Values& out) { world.gather(own, out, kRoot); },
        [&](Values& out) { return world.gather_async(own, out, kRoot); });
    expect_same(
        "gather_v", root ? 6 : 0, [&](Values& out) { world.gather_v(uneven, out, counts, kRoot); },
        [&](Values& out) { return world.gather_v_async(uneven, out, counts, kRoot); });
    // Only the root has an input for these.
    expect_same(
        "scatter", 2, [&](Values& out) { world.scatter(six, out, kRoot); },
        [&](Values& out) { return world.scatter_async(six, out, kRoot); });
    expect_same(
        "scatter_v", uneven.size(), [&](Values& out) { world.scatter_v(six, out, counts, kRoot); },
        [&](Values& out) { return world.scatter_v_async(six, out, counts, kRoot); });
    const auto begin = [&](Values& out) -> Values& {
      if (root) out = own;
      return out;
    };
    expect_same(
        "broadcast", 2, [&](Values& out) { world.broadcast(begin(out), kRoot); },
        [&](Values& out) { return world.broadcast_async(begin(out), kRoot); });
    expect_same("barrier", 0, [&](Values&) { world.barrier(); }, [&](Values&) { return world.barrier_async(); });
    ShardedToAll leave(world);
    expect_same(
        "ShardedToAll::forward", 6, [&](Values& out) { leave.forward(out = six); },
        [&](Values& out) { return leave.forward_async(out = six); });
  });
}
