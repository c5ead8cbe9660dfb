#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "tests/core/seeds.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using Catch::Matchers::Contains;
using ringlet::test::expect;

namespace {

std::vector<float> ramp(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((rank + 1) * static_cast<int>(i % 5 + 1));
  return values;
}

}  // namespace

TEST_CASE("all_sum of every size class over TCP") {
  const int size = GENERATE(2, 3, 4);
  test::run_ranks(size, [&](Group& world) {
    for (const std::size_t count : {0, 1, 3, 1000, 40'000, 300'000, 3'000'000}) {
      auto values = ramp(world.rank(), count);
      world.all_sum(values);
      for (std::size_t i = 0; i < count; ++i)
        expect(values[i] == static_cast<float>(size * (size + 1) / 2 * static_cast<int>(i % 5 + 1)),
               [&] { return "wrong sum at " + std::to_string(i) + " of " + std::to_string(count); });
    }
  });
}

TEST_CASE("several short buffers and a long one, on their way at the same time, arrive whole") {
  const bool sends = GENERATE(true, false);
  test::run_ranks(2, [&](Group& world) {
    const int other = 1 - world.rank();
    const auto begin = [&](std::vector<float>& values, std::uint16_t stream) {
      if (!sends) return world.all_reduce_async(ReduceOp::sum, values, values, {.stream = {stream}});
      return world.rank() == 0 ? world.send_async(values, other) : world.recv_async(values, other);
    };
    const float factor = sends ? 1.0f : 3.0f;
    for (int round = 0; round < 20; ++round) {
      std::vector<std::vector<float>> buffers;
      for (const std::size_t count : {25'600, 50'000, 25'600, 51'200, 25'600, 51'200, 1'000'000})
        buffers.push_back(ramp(world.rank(), count));
      std::vector<Work> works;
      for (std::size_t i = 0; i < buffers.size(); ++i) works.push_back(begin(buffers[i], static_cast<std::uint16_t>(i)));
      for (Work& work : works) work.wait();
      for (const auto& values : buffers) {
        auto expected = ramp(0, values.size());
        for (float& value : expected) value *= factor;
        expect(values == expected, [&] { return "wrong values in a buffer of " + std::to_string(values.size()); });
      }
    }
  });
}

TEST_CASE("the other collectives over TCP") {
  test::run_ranks(3, [](Group& world) {
    const int rank = world.rank();
    std::vector<std::int32_t> low{rank, 5 - rank};
    world.all_min(low);
    expect(low == std::vector<std::int32_t>{0, 3}, "all_min");
    std::vector<double> product{rank + 1.0};
    world.all_prod(product);
    expect(product[0] == 6, "all_prod");
    std::vector<float> mean{static_cast<float>(rank)};
    world.all_mean(mean);
    expect(mean[0] == 1, "all_mean");

    std::vector<std::int64_t> rows{1, 2, 3, 4};  // uneven: rank 0 gets two rows
    std::vector<std::int64_t> part(rank == 0 ? 2 : 1);
    world.sum_scatter(rows, part);
    expect(part.front() == 3 * (rank == 0 ? 1 : rank + 2), "sum_scatter");

    std::vector<std::uint8_t> all(6);
    world.all_gather(std::vector<std::uint8_t>{static_cast<std::uint8_t>(rank), 9}, all);
    expect(all == std::vector<std::uint8_t>{0, 9, 1, 9, 2, 9}, "all_gather");

    std::vector<float> from_two(1'000'000, static_cast<float>(rank));
    world.broadcast(from_two, 2);
    expect(from_two.front() == 2 && from_two.back() == 2, "broadcast");
    world.barrier();
  });
}

TEST_CASE("collectives of parts and to one rank over TCP") {
  test::run_ranks(3, [](Group& world) {
    using I32 = std::vector<std::int32_t>;
    using Counts = std::vector<std::int64_t>;
    const int rank = world.rank();
    for (const std::int64_t scale : {std::int64_t{1}, std::int64_t{300'000}}) {
      const Counts counts{2 * scale, 0, scale};
      const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
      const auto whole = static_cast<std::size_t>(3 * scale);
      const std::size_t first = rank == 2 ? 2 * static_cast<std::size_t>(scale) : 0;
      I32 gathered(whole, -1);
      world.all_gather_v(I32(own, rank + 1), gathered, counts);
      expect(gathered.front() == 1 && gathered[whole - 1] == 3 && gathered[whole / 3] == 1, "all_gather_v");
      I32 ramp(whole);
      for (std::size_t i = 0; i < whole; ++i) ramp[i] = static_cast<std::int32_t>(i % 1000) + rank;
      I32 part(own);
      world.reduce_scatter_v(ReduceOp::sum, ramp, part, counts);
      for (std::size_t i = 0; i < own; ++i) expect(part[i] == 3 * static_cast<std::int32_t>((first + i) % 1000) + 3, "reduce_scatter_v");
      I32 biggest(rank == 1 ? whole : 0);
      world.reduce(ReduceOp::max, ramp, biggest, 1);
      for (std::size_t i = 0; i < biggest.size(); ++i) expect(biggest[i] == static_cast<std::int32_t>(i % 1000) + 2, "reduce");
      I32 at_root(rank == 2 ? whole : 0);
      world.gather_v(I32(own, rank + 5), at_root, counts, 2);
      if (rank == 2) expect(at_root.front() == 5 && at_root.back() == 7, "gather_v");
      part.assign(own, 0);
      world.scatter_v(rank == 0 ? ramp : I32{}, part, counts, 0);
      for (std::size_t i = 0; i < own; ++i) expect(part[i] == static_cast<std::int32_t>((first + i) % 1000), "scatter_v");

      I32 from_all(whole);
      world.all_to_all(ramp, from_all);
      for (int r = 0; r < 3; ++r) {
        const auto block = static_cast<std::size_t>(scale);
        expect(
            from_all[static_cast<std::size_t>(r) * block] == static_cast<std::int32_t>(static_cast<std::size_t>(rank) * block % 1000) + r,
            "all_to_all");
      }
    }
    I32 all(3);
    world.gather(I32{rank}, rank == 0 ? TensorView(all) : TensorView(), 0);
    if (rank == 0) expect(all == I32{0, 1, 2}, "gather");
    I32 mine(2);
    world.scatter(rank == 1 ? I32{1, 2, 3, 4, 5, 6} : I32{}, mine, 1);
    expect(mine == I32{2 * rank + 1, 2 * rank + 2}, "scatter");
    // Rank r has r rows for each other rank and none for itself.
    Counts sent(3, rank), received{0, 1, 2};
    sent[static_cast<std::size_t>(rank)] = received[static_cast<std::size_t>(rank)] = 0;
    I32 in_rows(static_cast<std::size_t>(2 * rank), rank), out_rows(static_cast<std::size_t>(3 - rank), -1);
    Work work = world.all_to_all_v_async(in_rows, out_rows, sent, received);
    work.wait();
    expect(out_rows == std::vector<I32>{{1, 2, 2}, {2, 2}, {1}}[static_cast<std::size_t>(rank)], "all_to_all_v");
  });
}

TEST_CASE("send and recv between any two ranks") {
  test::run_ranks(4, [](Group& world) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{500'000}}) {
      std::vector<Work> sends;
      const auto mine = ramp(world.rank(), count);
      for (int peer = 0; peer < 4; ++peer)
        if (peer != world.rank()) sends.push_back(world.send_async(mine, peer));
      for (int peer = 0; peer < 4; ++peer) {
        if (peer == world.rank()) continue;
        std::vector<float> theirs(count);
        world.recv(theirs, peer);
        expect(theirs == ramp(peer, count), "message of rank " + std::to_string(peer));
      }
      for (auto& send : sends) send.wait();
    }
  });
}

TEST_CASE("receive from any rank, waiting or not, into a view with gaps") {
  test::run_ranks(4, [](Group& world) {
    if (world.rank() != 0) {
      world.send(ramp(world.rank(), 1000), 0);
      world.send(ramp(world.rank() + 10, 1000), 0);
      return world.barrier();
    }
    std::vector<int> seen(4);
    for (int i = 0; i < 3; ++i) {
      std::vector<float> theirs(1000);
      const int source = world.recv_any(theirs);
      expect(theirs == ramp(source + (++seen[static_cast<std::size_t>(source)] == 1 ? 0 : 10), 1000), "waiting");
    }
    for (int i = 0; i < 3; ++i) {
      std::vector<float> spread(2000, -1);
      int source = -1;
      const std::int64_t strides[] = {2};
      Work work = world.recv_any_async(TensorView(spread.data(), DType::f32, Shape{1000}, strides), source);
      work.wait();
      const auto sent = ramp(source + (++seen[static_cast<std::size_t>(source)] == 1 ? 0 : 10), 1000);
      expect(spread[0] == sent[0] && spread[1] == -1 && spread[1998] == sent[999], "not waiting");
    }
    expect(seen == std::vector<int>{0, 2, 2, 2}, "sources");
    world.barrier();
  });
}

TEST_CASE("calls that make the tensor they return") {
  test::run_ranks(3, [](Group& world) {
    const int rank = world.rank();
    std::vector<std::int64_t> rows{10, 11, 20, 21, 30, 31, 40, 41};
    const Tensor part = world.sum_scatter(ConstTensorView(rows.data(), DType::i64, Shape{4, 2}));  // uneven: rank 0 gets two rows
    expect(part.shape() == Shape{rank == 0 ? 2 : 1, 2} && part.dtype() == DType::i64, "shape of sum_scatter");
    expect(part.values<std::int64_t>()[1] == 3 * (rank == 0 ? 11 : 10 * rank + 21), "sum_scatter");

    const std::vector<float> own(6, static_cast<float>(rank));
    const Tensor all = world.all_gather(ConstTensorView(own.data(), DType::f32, Shape{2, 3}), {.stream = {1}});
    expect(all.shape() == Shape{6, 3} && all.values<float>()[5] == 0 && all.values<float>()[6] == 1, "all_gather");
    const Tensor scalars = world.all_gather(ConstTensorView(own.data(), DType::f32, Shape{}));
    expect(scalars.shape() == Shape{3} && scalars.values<float>()[2] == 2, "all_gather of scalars");
    expect(world.all_gather(ConstTensorView(own.data(), DType::f32, Shape{0, 3})).shape() == Shape{0, 3}, "all_gather of nothing");

    if (rank == 0) world.send(ConstTensorView(rows.data(), DType::i64, Shape{2, 4}), 2);
    if (rank == 2) {
      const Tensor got = world.recv_like(Tensor(DType::i64, Shape{2, 4}), 0);
      expect(got.shape() == Shape{2, 4} && got.values<std::int64_t>()[7] == 41, "recv_like");
    }
    bool refused = false;
    try {
      (void)world.sum_scatter(ConstTensorView(own.data(), DType::i32, Shape{}));
    } catch (const InvalidArgument& error) {
      refused = std::string(error.what()).find("scalar") != std::string::npos;
    }
    expect(refused, "sum_scatter of a scalar");
  });
}

TEST_CASE("operations go on behind the caller and complete in order") {
  test::run_ranks(2, [](Group& world) {
    constexpr std::size_t kCount = 200'000;
    std::vector<std::vector<float>> values(8, ramp(world.rank(), kCount));
    std::vector<Work> works;
    for (auto& v : values) works.push_back(world.all_reduce_async(ReduceOp::sum, v, v));
    while (!works.back().done()) std::this_thread::yield();  // nobody waits: the helper thread must move it
    for (auto& work : works) {
      expect(work.done(), "order");
      work.wait();
    }
    for (const auto& v : values) expect(v[1] == 6, "value");
  });
}

TEST_CASE("what is started without waiting comes before what is started later") {
  test::run_ranks(2, [](Group& world) {
    // This needs the helper thread to be about to start the first operation while the caller starts the second, which happens now and then.
    for (std::uint64_t i = 0; i < test::share_of(20'000); ++i) {
      std::vector<std::int32_t> first{1}, second{1, 2};
      Work work = world.all_reduce_async(ReduceOp::sum, first, first);
      if (i % 2 == 0) {
        world.all_max(second);
      } else {
        Work other = world.all_reduce_async(ReduceOp::max, second, second);
        other.wait();
      }
      work.wait();
      expect(first[0] == 2, "sum");
    }
  });
}

TEST_CASE("two streams overlap: their operations may be started in any order") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> first{1}, second{static_cast<float>(world.rank())};
    const auto sum = [&] { return world.all_reduce_async(ReduceOp::sum, first, first, {.stream = {1}}); };
    const auto max = [&] { return world.all_reduce_async(ReduceOp::max, second, second, {.stream = {2}}); };
    std::vector<Work> works;
    works.push_back(world.rank() == 0 ? sum() : max());
    works.push_back(world.rank() == 0 ? max() : sum());
    for (auto& work : works) work.wait();
    expect(first[0] == 2 && second[0] == 1, "values");
  });
}

TEST_CASE("many threads of one rank at once") {
  test::run_ranks(2, [](Group& world) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint16_t stream = 0; stream < 4; ++stream) {
      threads.emplace_back([&, stream] {
        for (int i = 0; i < 200; ++i) {
          std::vector<std::int32_t> value{i + stream};
          world.all_sum(value, {.stream = {stream}});
          if (value[0] != 2 * (i + stream)) ++wrong;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    expect(wrong == 0, "wrong sums");
  });
}

TEST_CASE("wait_for gives up and the work goes on") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> value{1};
    if (world.rank() == 0) {
      Work work = world.all_reduce_async(ReduceOp::sum, value, value);
      expect(!work.wait_for(std::chrono::milliseconds(20)), "too early");
      std::vector<std::uint8_t> go{1};
      world.send(go, 1);
      work.wait();
      expect(value[0] == 2, "sum");
    } else {
      std::vector<std::uint8_t> go(1);
      world.recv(go, 0);
      world.all_sum(value);
    }
  });
}

TEST_CASE("a group of one needs nobody") {
  Group alone;
  CHECK(alone.rank() == 0);
  CHECK(alone.size() == 1);
  std::vector<float> values{1, 2};
  alone.all_sum(values);
  CHECK(values == std::vector<float>{1, 2});
  std::vector<float> out(2);
  Work work = alone.all_reduce_async(ReduceOp::max, values, out);
  CHECK(work.done());
  CHECK(out == values);
  alone.barrier();
  std::vector<float> gathered(2);
  alone.all_gather(values, gathered);
  CHECK(gathered == values);
  const std::vector<std::int64_t> counts{2};
  const auto copied = [&](const char* what, const std::function<void(std::vector<float>&)>& call) {
    CAPTURE(what);
    std::vector<float> copy(2);
    call(copy);
    CHECK(copy == values);
  };
  copied("all_gather_v", [&](auto& copy) { alone.all_gather_v(values, copy, counts); });
  copied("reduce_scatter_v", [&](auto& copy) { alone.reduce_scatter_v(ReduceOp::min, values, copy, counts); });
  copied("reduce", [&](auto& copy) { alone.reduce(ReduceOp::prod, values, copy, 0); });
  copied("gather", [&](auto& copy) { alone.gather(values, copy, 0); });
  copied("gather_v", [&](auto& copy) { alone.gather_v(values, copy, counts, 0); });
  copied("scatter", [&](auto& copy) { alone.scatter(values, copy, 0); });
  copied("scatter_v", [&](auto& copy) { alone.scatter_v(values, copy, counts, 0); });
  copied("all_to_all", [&](auto& copy) { alone.all_to_all(values, copy); });
  copied("all_to_all_v", [&](auto& copy) { alone.all_to_all_v(values, copy, counts, counts); });
  CHECK_THROWS_AS(alone.send(values, 0), InvalidArgument);
}

TEST_CASE("wrong arguments are refused before anything moves, and the group lives on") {
  test::run_ranks(2, [](Group& world) {
    const auto refused = [&](const char* what, const std::function<void()>& call) {
      try {
        call();
      } catch (const InvalidArgument& error) {
        expect(std::string(error.what()).find(what) != std::string::npos, std::string("text: ") + error.what());
        return;
      }
      throw std::runtime_error(std::string("not refused: ") + what);
    };
    std::vector<float> values{1, 2, 3};
    std::vector<float> shorter(2);
    std::vector<std::int32_t> integers(3);
    refused("null", [&] { world.all_sum(TensorView(nullptr, DType::f32, 4)); });
    refused("unknown dtype number 77", [&] { world.all_sum(TensorView(values.data(), static_cast<DType>(77), 3)); });
    refused("3 elements but output has 2", [&] { world.all_reduce(ReduceOp::sum, values, shorter); });
    refused("same dtype", [&] { world.all_reduce(ReduceOp::sum, values, integers); });
    refused("overlap", [&] {
      world.all_reduce(ReduceOp::sum, TensorView(values.data(), DType::f32, 2), TensorView(values.data() + 1, DType::f32, 2));
    });
    refused("operation number 9", [&] { world.all_reduce(static_cast<ReduceOp>(9), values, values); });
    refused("ranks 0 to 1", [&] { world.broadcast(values, 2); });
    refused("ranks 0 to 1", [&] { world.send(values, -1); });
    refused("itself", [&] { world.recv(values, world.rank()); });
    refused("cast to a floating dtype", [&] { world.all_mean(integers); });
    refused("scalar", [&] { world.sum_scatter(TensorView(values.data(), DType::f32, Shape{}), shorter); });
    const std::vector<std::int64_t> counts{2, 1};
    refused("output (2,) has 2 rows, but counts add up to 3", [&] {
      const auto rows = static_cast<std::size_t>(counts[static_cast<std::size_t>(world.rank())]);
      world.all_gather_v(ConstTensorView(values.data(), DType::f32, rows), shorter, counts);
    });
    refused("rows of input (3,) do not divide by 2 ranks", [&] { world.all_to_all(values, values); });
    refused("stream 5000", [&] { world.barrier({.stream = {5000}}); });
    refused("timeout", [&] { world.barrier({.timeout = std::chrono::milliseconds(0)}); });
    refused("negative", [&] { Shape{-1}; });
    refused("impossible shape", [&] { world.all_sum(TensorView(values.data(), DType::f32, Shape{1ll << 40, 1ll << 40})); });
    refused("no operation 'dance'", [&] { (void)world.algorithm("dance", 1); });
    world.all_sum(values);
    expect(values[2] == 6, "the group lives on");
  });
}
