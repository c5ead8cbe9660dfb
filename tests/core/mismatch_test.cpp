#include <catch2/catch.hpp>

#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

struct Buffers {
  std::vector<float> in = std::vector<float>(120'000, 1.0F);
  std::vector<float> out = std::vector<float>(120'000);
  std::vector<std::int32_t> ints = std::vector<std::int32_t>(1000);
  std::vector<std::byte> blocks = std::vector<std::byte>(65 * 17 * 100);
};

using MakeTask = std::function<Result<CollectiveTask>(Buffers&, const WorldOptions&)>;

struct Disagreement {
  const char* name;
  MakeTask most;
  MakeTask odd;
  const char* most_text;
  const char* odd_text;
};

Result<CollectiveTask> sum(Buffers& b, const WorldOptions& o, std::size_t count, double divisor = 1, ReduceOp op = ReduceOp::sum) {
  return make_all_reduce(op, TensorView(b.in.data(), DType::f32, count), TensorView(b.in.data(), DType::f32, count), divisor, o);
}

std::vector<Disagreement> disagreements() {
  const auto of_count = [](std::size_t count) { return [count](Buffers& b, const WorldOptions& o) { return sum(b, o, count); }; };
  const auto of_root = [](int root) {
    return [root](Buffers& b, const WorldOptions& o) { return make_broadcast(TensorView(b.in.data(), DType::f32, 500), root, o); };
  };
  const auto large_root = [](int root) { return [root](Buffers& b, const WorldOptions& o) { return make_broadcast(b.in, root, o); }; };
  // The parts have rows of 5 elements, 100 or 20000 rows in all.
  const auto gathered = [](std::int64_t scale, std::int64_t moved) {
    return [scale, moved](Buffers& b, const WorldOptions& o) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(o.size), 10 * scale);
      counts.front() += moved;
      counts.back() = 100 * scale - 10 * scale * (o.size - 1) - moved;
      const auto mine = counts[static_cast<std::size_t>(o.rank)];
      return make_all_gather_v(ConstTensorView(b.in.data(), DType::f32, Shape{mine, 5}),
                               TensorView(b.out.data(), DType::f32, Shape{100 * scale, 5}), counts, o);
    };
  };
  const auto scattered = [](std::int64_t moved) {
    return [moved](Buffers& b, const WorldOptions& o) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(o.size), 20);
      counts.front() += moved;
      counts.back() -= moved;
      const auto mine = counts[static_cast<std::size_t>(o.rank)];
      return make_reduce_scatter_v(ReduceOp::max, ConstTensorView(b.in.data(), DType::f32, Shape{20 * o.size, 3}),
                                   TensorView(b.out.data(), DType::f32, Shape{mine, 3}), counts, o);
    };
  };
  const auto reduced = [](int root, std::size_t count) {
    return [root, count](Buffers& b, const WorldOptions& o) {
      return make_reduce(ReduceOp::sum, TensorView(b.in.data(), DType::f32, count), TensorView(b.out.data(), DType::f32, count), root, o);
    };
  };
  const auto gathered_at = [](int root) {
    return [root](Buffers& b, const WorldOptions& o) {
      const auto size = static_cast<std::size_t>(o.size);
      return make_gather(TensorView(b.in.data(), DType::f32, 50), TensorView(b.out.data(), DType::f32, 50 * size), root, o);
    };
  };
  const auto to_all = [](std::size_t each) {
    return [each](Buffers& b, const WorldOptions& o) {
      const auto count = each * static_cast<std::size_t>(o.size);
      return make_all_to_all(TensorView(b.in.data(), DType::f32, count), TensorView(b.out.data(), DType::f32, count), o);
    };
  };
  const auto in_blocks = [](BlockFormat format, std::size_t count) {
    return [format, count](Buffers& b, const WorldOptions& o) {
      return make_all_reduce_blocks(format, Bytes(b.blocks).first(count * block_bytes(format)), nullptr, o);
    };
  };
  const MakeTask barrier = [](Buffers&, const WorldOptions& o) { return make_barrier(o); };
  return {
      {"op", of_count(1000), [](Buffers& b, const WorldOptions& o) { return sum(b, o, 1000, 1, ReduceOp::max); },
       "all_reduce(sum, f32 x 1000", "all_reduce(max, f32 x 1000"},
      {"dtype", of_count(1000), [](Buffers& b, const WorldOptions& o) { return make_all_reduce(ReduceOp::sum, b.ints, b.ints, 1, o); },
       "f32 x 1000", "i32 x 1000"},
      {"count", of_count(1000), of_count(1001), "f32 x 1000,", "f32 x 1001,"},
      {"algorithm", of_count(10), of_count(120'000), "f32 x 10,", "f32 x 120000,"},
      {"count in a ring", of_count(110'000), of_count(120'000), "f32 x 110000,", "f32 x 120000,"},
      {"divisor", of_count(1000), [](Buffers& b, const WorldOptions& o) { return sum(b, o, 1000, 3); }, "f32 x 1000, ", "divided by 3"},
      {"root", of_root(0), of_root(1), "root 0", "root 1"},
      {"root in a chain", large_root(0), large_root(1), "root 0", "root 1"},
      {"counts", gathered(1, 0), gathered(1, 1), "all_gather_v(f32, rows 10+", "all_gather_v(f32, rows 11+"},
      {"counts in a ring", gathered(200, 0), gathered(200, 7), "rows 2000+", "rows 2007+"},
      {"counts or none", gathered(1, 0), of_count(500), "all_gather_v(f32, rows 10+", "all_reduce(sum, f32 x 500"},
      {"counts of a reduction", scattered(0), scattered(3), "reduce_scatter_v(max, f32, rows 20+", "reduce_scatter_v(max, f32, rows 23+"},
      {"root of a reduction", reduced(0, 100), reduced(1, 100), "root 0", "root 1"},
      {"root of a chain of reductions", reduced(0, 120'000), reduced(1, 120'000), "root 0", "root 1"},
      {"count of a reduction", reduced(1, 100), reduced(1, 101), "f32 x 100,", "f32 x 101,"},
      {"root of a gather", gathered_at(0), gathered_at(1), "root 0", "root 1"},
      {"gather or all-to-all", gathered_at(1), to_all(50), "gather", "all_to_all"},
      {"count of an all-to-all", to_all(100), to_all(101), "f32 x 100,", "f32 x 101,"},
      {"blocks or none", of_count(1000), in_blocks(BlockFormat::int8, 1000), "f32 x 1000,", "int8 blocks x 1000,"},
      {"format of blocks", in_blocks(BlockFormat::int8, 17), in_blocks(BlockFormat::int4, 65), "int8 blocks x 17,", "int4 blocks x 65,"},
      {"number of blocks", in_blocks(BlockFormat::int4, 65), in_blocks(BlockFormat::int4, 66), "int4 blocks x 65,", "int4 blocks x 66,"},
      {"kind", barrier, of_count(5), "barrier", "all_reduce"},
      {"kind in a ring", large_root(0), of_count(120'000), "broadcast", "all_reduce"},
  };
}

}  // namespace

TEST_CASE("ranks that disagree all learn who called what") {
  for (const auto& disagreement : disagreements()) {
    for (const auto seed : seeds(30)) {
      CAPTURE(disagreement.name, seed);
      GroupSetup setup;
      setup.size = static_cast<int>(2 + seed % 4);
      setup.seed = seed;
      SimGroup group(setup);
      group.meet();
      std::vector<Buffers> buffers(static_cast<std::size_t>(setup.size));
      std::vector<Outcome*> outcomes;
      const int odd = static_cast<int>(seed / 4) % setup.size;
      for (int rank = 0; rank < setup.size; ++rank) {
        auto task = (rank == odd ? disagreement.odd : disagreement.most)(buffers[static_cast<std::size_t>(rank)], group.options(rank));
        outcomes.push_back(&group.start(rank, 0, std::move(task)));
      }
      REQUIRE(group.run_until_done(Duration::seconds(5)));
      // A broadcast's root may be done before it learns of the mismatch; the group fails all the same.
      group.sim().run_for(Duration::seconds(1));
      for (int rank = 0; rank < setup.size; ++rank) {
        CAPTURE(rank);
        const Outcome& outcome = *outcomes[static_cast<std::size_t>(rank)];
        REQUIRE(outcome.completions == 1);
        const Status& failure = group.world(rank).failure();
        REQUIRE(failure.code() == Errc::mismatch);
        REQUIRE_THAT(failure.text(),
                     Contains(disagreement.most_text) && Contains(disagreement.odd_text) && Contains("rank " + std::to_string(odd)));
        if (!outcome.status.ok()) REQUIRE(outcome.status == failure);
      }
    }
  }
}

TEST_CASE("an elastic group has lost a guest that disagrees, and tells it the reason") {
  for (const auto seed : seeds(60)) {
    GroupSetup setup;
    setup.world.elastic = true;
    setup.world.guests = 2;
    const int natives = static_cast<int>(1 + seed % 3);
    setup.size = natives + setup.world.guests;
    setup.seed = seed;
    const int odd = natives + static_cast<int>(seed / 3 % 2);
    CAPTURE(seed, natives, odd);
    SimGroup group(setup);
    group.meet();
    std::vector<Buffers> buffers(static_cast<std::size_t>(setup.size));
    for (int rank = 0; rank < setup.size; ++rank)
      group.start(rank, 0, sum(buffers[static_cast<std::size_t>(rank)], group.options(rank), rank == odd ? 1001 : 1000));
    REQUIRE(group.run_until_done(Duration::seconds(5)));
    group.sim().run_for(Duration::seconds(1));
    for (int rank = 0; rank < setup.size; ++rank) {
      CAPTURE(rank);
      const Status& failure = group.world(rank).failure();
      INFO(failure.text());
      if (rank == odd)
        CHECK(failure.code() == Errc::mismatch);
      else if (rank < natives)
        CHECK(failure.code() == Errc::peer_lost);
      CHECK_THAT(failure.text(), Contains("f32 x 1000,") && Contains("f32 x 1001,"));
    }
  }
}

TEST_CASE("ranks that disagree about what one sends the other learn both numbers") {
  for (const auto seed : seeds(30)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = static_cast<int>(3 + seed % 3);
    setup.seed = seed;
    SimGroup group(setup);
    group.meet();
    const int sender = static_cast<int>(seed) % setup.size;
    const int receiver = (sender + 1 + static_cast<int>(seed / 6) % (setup.size - 1)) % setup.size;
    std::vector<Buffers> buffers(static_cast<std::size_t>(setup.size));
    for (int rank = 0; rank < setup.size; ++rank) {
      std::vector<std::int64_t> sent(static_cast<std::size_t>(setup.size), 4);
      std::vector<std::int64_t> received = sent;
      if (rank == sender) sent[static_cast<std::size_t>(receiver)] = 7;
      const std::int64_t all = 4 * setup.size;
      Buffers& own = buffers[static_cast<std::size_t>(rank)];
      group.start(rank, 0,
                  make_all_to_all_v(ConstTensorView(own.in.data(), DType::f32, Shape{rank == sender ? all + 3 : all, 3}),
                                    TensorView(own.out.data(), DType::f32, Shape{all, 3}), sent, received, group.options(rank)));
    }
    REQUIRE(group.run_until_done(Duration::seconds(5)));
    group.sim().run_for(Duration::seconds(1));
    const auto called = [](int rank, int sent, int peer) {
      return "rank " + std::to_string(rank) + " called all_to_all_v(f32, sends rows " + std::to_string(sent) +
             " x 3, receives rows 4 x 3, direct) with rank " + std::to_string(peer);
    };
    for (int rank = 0; rank < setup.size; ++rank) {
      const Status& failure = group.world(rank).failure();
      REQUIRE(failure.code() == Errc::mismatch);
      REQUIRE_THAT(failure.text(), Contains(called(sender, 7, receiver)) && Contains(called(receiver, 4, sender)));
    }
  }
}

TEST_CASE("a call that others do not make ends with its deadline and their names") {
  GroupSetup setup;
  setup.size = 3;
  SimGroup group(setup);
  group.meet();
  std::vector<Outcome*> outcomes;
  for (const int rank : {0, 2}) {
    auto task = make_barrier(group.options(rank));
    task.timeout = Duration::seconds(1);
    outcomes.push_back(&group.start(rank, 0, task));
  }
  REQUIRE(group.run_until_done(Duration::seconds(2)));
  for (const Outcome* outcome : outcomes) {
    CHECK(outcome->status.code() == Errc::timed_out);
    CHECK(outcome->status.rank() == 1);
    CHECK_THAT(outcome->status.text(), Contains("barrier") && Contains("1000 ms") && Contains("rank 1 (has not called it)"));
  }
  group.sim().run_for(Duration::milliseconds(100));
  CHECK(group.world(1).failure().code() == Errc::timed_out);
}

TEST_CASE("whoever does not come is named, though some wait for a rank that waits itself") {
  for (const int size : {4, 8}) {
    for (int missing = 0; missing < size; ++missing) {
      CAPTURE(size, missing);
      GroupSetup setup;
      setup.size = size;
      SimGroup group(setup);
      group.meet();
      std::vector<Outcome*> outcomes;
      for (int rank = 0; rank < size; ++rank) {
        if (rank == missing) continue;
        auto task = make_barrier(group.options(rank));
        task.timeout = Duration::seconds(1);
        outcomes.push_back(&group.start(rank, 0, task));
      }
      REQUIRE(group.run_until_done(Duration::seconds(2)));
      for (const Outcome* outcome : outcomes) {
        CHECK(outcome->status.code() == Errc::timed_out);
        CHECK(outcome->status.rank() == missing);
      }
    }
  }
}
