#include <catch2/catch.hpp>

#include "tests/core/operation.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Returns machines for the native ranks: one each, or some that are shared, by neighbours or by others.
std::vector<int> random_machines(SimRandom& random, int natives) {
  std::vector<int> machines;
  const auto count = 1 + random.below(static_cast<std::uint64_t>(natives));
  const auto sort = random.below(3);
  for (int rank = 0; rank < natives && sort != 0; ++rank)
    machines.push_back(
        static_cast<int>(sort == 1 ? static_cast<std::uint64_t>(rank) * count / static_cast<std::uint64_t>(natives) : random.below(count)));
  return machines;
}

WorldOptions random_options(SimRandom& random, int size) {
  WorldOptions options;
  options.size = size;
  if (random.below(2) != 0) {
    options.segment_bytes = pick<std::size_t>(random, {8, 24, 100, 1000, 4096});
    options.eager_bytes = pick<std::size_t>(random, {0, 16, 300, 5000});
    options.eager_window_bytes = pick<std::size_t>(random, {512, 600, 2000, 20000});
    options.session.receive_buffer_bytes = pick<std::size_t>(random, {128, 200, 1000, 16384});
    options.session.batch_bytes = pick<std::size_t>(random, {1, 500, 100000});
  }
  if (random.below(2) != 0) options.early_limits = {pick<std::size_t>(random, {0, 100, 3000}), pick<std::size_t>(random, {512, 700, 3000})};
  options.guests = random.below(2) != 0 ? static_cast<int>(random.below(static_cast<std::uint64_t>(size))) : 0;
  options.placement.policy = static_cast<PlacementPolicy>(random.below(kPlacementPolicyCount));
  options.placement.order = static_cast<ReduceOrder>(random.below(kReduceOrderCount));
  if (random.below(2) != 0)
    options.leaf_limits = {pick<std::size_t>(random, {1, 20, 1000}), pick<std::size_t>(random, {0, 100, 5000}), 3000, 16};
  if (random.below(4) != 0) {
    options.machine_limits = {pick<std::size_t>(random, {0, 0, 100}),
                              pick<std::size_t>(random, {1, 50, 1000}),
                              pick<std::size_t>(random, {0, 200, 2000, 1 << 20}),
                              pick<std::size_t>(random, {0, 300, 1 << 20}),
                              pick<std::size_t>(random, {0, 100, 1 << 20}),
                              pick<std::size_t>(random, {0, 0, 50})};
  }
  options.ring_limits.piece_bytes = pick<std::size_t>(random, {1, 100, 1000, 4 << 20});
  options.limits.exchange_bytes = pick<std::size_t>(random, {0, 64, 1000, 32 << 10});
  options.limits.direct_bytes = options.limits.exchange_bytes + pick<std::size_t>(random, {0, 100, 2000, 256 << 10});
  return options;
}

std::uint64_t run_seed(std::uint64_t seed, std::size_t largest, int operation_count) {
  SimRandom random(seed * 2 + 1);
  GroupSetup setup;
  setup.size = static_cast<int>(1 + random.below(8));
  setup.seed = seed;
  setup.with_roster = random.below(2) != 0;
  setup.encrypts = seed % 4 == 1;
  if (random.below(2) != 0) setup.paths = rough_paths();
  setup.world = random_options(random, setup.size);
  setup.machines = random_machines(random, setup.size - setup.world.guests);
  SimGroup group(setup);
  group.meet();
  std::vector<Operation> operations;
  for (int i = 0; i < operation_count; ++i) operations.push_back(random_operation(random, group.options(0), largest));
  const auto lag = random.below(3) * 300;
  for (int rank = 0; rank < setup.size; ++rank) {
    Duration delay{};
    for (auto& operation : operations) {
      operation.outcomes.resize(static_cast<std::size_t>(setup.size));
      if (random.below(2) != 0) delay = Duration{delay.nanoseconds + static_cast<std::int64_t>(random.below(lag * 1000 + 1))};
      group.node(rank).loop().after(delay, [&group, &operation, rank] {
        operation.outcomes[static_cast<std::size_t>(rank)] =
            &group.start(rank, operation.stream, make_task(operation, rank, group.options(rank)));
      });
    }
  }
  const auto finished = [&] {
    for (const auto& operation : operations)
      for (const Outcome* outcome : operation.outcomes)
        if (outcome == nullptr || !outcome->done()) return false;
    return true;
  };
  REQUIRE(group.sim().run_until(finished, {.time = Duration::seconds(3000)}) == RunEnd::done);
  for (auto& operation : operations) check_operation(operation, setup.size);
  group.close_cleanly();
  return group.sim().trace_hash();
}

}  // namespace

TEST_CASE("random collectives give the promised bits on every rank") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    run_seed(seed, 20'000, 30);
  }
}

TEST_CASE("large collectives give the promised bits on every rank") {
  for (const auto seed : seeds(12)) {
    CAPTURE(seed);
    run_seed(seed + 1000, 2 << 20, 6);
  }
}

TEST_CASE("the same seed gives the same trace") {
  for (const auto seed : seeds(10)) {
    CAPTURE(seed);
    CHECK(run_seed(seed, 5'000, 10) == run_seed(seed, 5'000, 10));
  }
}

// This covers all kinds, operations, dtypes and counts 0..40 for 1 to 8 ranks, dealt out over 200 seeds with their own networks and limits.
TEST_CASE("every kind, operation, dtype and small count gives the promised bits with every number of ranks") {
  constexpr std::uint64_t kSeedsPerSize = 25;
  constexpr std::size_t kCounts = 41;
  struct Variant {
    CollectiveKind kind;
    ReduceOp op;
    bool mean;
    bool with_counts;
  };
  using Kind = CollectiveKind;
  std::vector<Variant> variants{{Kind::broadcast, ReduceOp::sum, false, false}};
  for (const auto kind : {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter}) variants.push_back({kind, ReduceOp::sum, true, false});
  variants.push_back({Kind::reduce_scatter, ReduceOp::sum, true, true});
  for (const bool with_counts : {false, true}) {
    for (const auto kind : {Kind::all_gather, Kind::gather, Kind::scatter, Kind::all_to_all})
      variants.push_back({kind, ReduceOp::sum, false, with_counts});
    for (const auto& op : detail::kReduceOps) variants.push_back({Kind::reduce_scatter, op.op, false, with_counts});
  }
  for (const auto& op : detail::kReduceOps)
    for (const auto kind : {Kind::all_reduce, Kind::reduce}) variants.push_back({kind, op.op, false, false});

  for (const auto seed : seeds(8 * kSeedsPerSize)) {
    CAPTURE(seed);
    SimRandom random(seed + 7000);
    GroupSetup setup;
    setup.size = static_cast<int>(1 + seed % 8);
    setup.seed = seed;
    setup.paths = rough_paths();
    setup.world = random_options(random, setup.size);
    setup.machines = random_machines(random, setup.size - setup.world.guests);
    SimGroup group(setup);
    group.meet();
    std::deque<Operation> operations;
    for (std::uint64_t combination = seed / 8; combination < variants.size() * kDTypeCount * kCounts; combination += kSeedsPerSize) {
      const Variant variant = variants[combination / (kDTypeCount * kCounts)];
      Operation operation;
      Call& call = operation.call;
      call.kind = variant.kind;
      call.op = variant.op;
      call.dtype = static_cast<DType>(combination / kCounts % kDTypeCount);
      call.rows = combination % kCounts;
      if (variant.mean && !is_floating(call.dtype)) continue;
      if (!can_reduce(call.dtype, call.op)) continue;
      if (variant.mean) call.divisor = setup.size;
      call.root = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(setup.size)));
      operation.in_place = random.below(2) != 0;
      operation.with_counts = variant.with_counts;
      if (has_parts(call.kind) || call.kind == Kind::all_to_all) choose_parts(operation, call.rows, setup.size, random);
      complete(operation, random, group.options(0));
      operations.push_back(std::move(operation));
    }
    for (auto& operation : operations)
      for (int rank = 0; rank < setup.size; ++rank)
        operation.outcomes.push_back(&group.start(rank, 0, make_task(operation, rank, group.options(rank))));
    REQUIRE(group.run_until_done());
    for (auto& operation : operations) check_operation(operation, setup.size);
    group.close_cleanly();
  }
}
