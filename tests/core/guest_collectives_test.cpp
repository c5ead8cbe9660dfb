#include <catch2/catch.hpp>
#include <deque>

#include "tests/core/operation.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

struct Variant {
  CollectiveKind kind;
  ReduceOp op = ReduceOp::sum;
  bool mean = false;
};

/// Returns every kind that can run by the hub or in the order of a ring, with every operation that it takes.
std::vector<Variant> all_variants() {
  using Kind = CollectiveKind;
  std::vector<Variant> variants{{Kind::broadcast}, {Kind::all_gather}, {Kind::barrier}};
  for (const auto kind : {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter}) {
    variants.push_back({kind, ReduceOp::sum, true});
    for (const auto& op : detail::kReduceOps) variants.push_back({kind, op.op});
  }
  return variants;
}

GroupSetup guest_collectives_setup(SimRandom& random, std::uint64_t seed, int natives, int guests, PlacementPolicy policy) {
  GroupSetup setup;
  setup.size = natives + guests;
  setup.seed = seed;
  setup.paths = rough_paths();
  setup.world.guests = guests;
  setup.world.placement.policy = policy;
  setup.world.placement.order = static_cast<ReduceOrder>(random.below(kReduceOrderCount));
  setup.world.limits.exchange_bytes = 0;
  setup.world.limits.direct_bytes = pick<std::size_t>(random, {0, 100});
  setup.world.segment_bytes = pick<std::size_t>(random, {8, 24, 256 << 10});
  setup.world.leaf_limits = {pick<std::size_t>(random, {1, 30, 1000}), 0, 3000, pick<std::size_t>(random, {16, 48, 1000})};
  return setup;
}

std::optional<Operation> operation_of(const Variant& variant, DType dtype, std::uint64_t rows, SimRandom& random,
                                      const WorldOptions& options) {
  Operation operation;
  Call& call = operation.call;
  call.kind = variant.kind;
  call.op = variant.op;
  call.dtype = dtype;
  call.rows = call.kind == CollectiveKind::barrier ? 0 : rows;
  if (variant.mean && !is_floating(dtype)) return std::nullopt;
  if (!can_reduce(dtype, variant.op)) return std::nullopt;
  if (variant.mean) call.divisor = options.size;
  if (call.kind != CollectiveKind::barrier) call.root = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(options.size)));
  operation.in_place = random.below(2) != 0;
  if (has_parts(call.kind)) choose_parts(operation, rows, options.size, random);
  complete(operation, random, options);
  return operation;
}

void run(SimGroup& group, std::deque<Operation>& operations) {
  for (auto& operation : operations)
    for (int rank = 0; rank < group.size(); ++rank)
      operation.outcomes.push_back(&group.start(rank, operation.stream, make_task(operation, rank, group.options(rank))));
  REQUIRE(group.run_until_done());
  for (auto& operation : operations) check_operation(operation, group.size());
}

}  // namespace

// This covers variants, dtypes and counts 0..40 for 1 to 4 natives and 1 to 8 guests, dealt out over the seeds.
TEST_CASE("groups with guests give the promised bits for every kind, operation, dtype and small count") {
  constexpr std::uint64_t kWorlds = 4 * 8;
  constexpr std::uint64_t kSeedsPerWorld = 6;
  constexpr std::size_t kCounts = 41;
  constexpr std::size_t kStride = 7 * kSeedsPerWorld;
  const std::vector<Variant> variants = all_variants();
  for (const auto seed : seeds(kWorlds * kSeedsPerWorld)) {
    const int natives = static_cast<int>(1 + seed % 4);
    const int guests = static_cast<int>(1 + seed / 4 % 8);
    const PlacementPolicy policy = seed / kWorlds % 3 == 0 ? PlacementPolicy::ring : PlacementPolicy::hub;
    CAPTURE(seed, natives, guests, name_of(policy));
    SimRandom random(seed + 90'000);
    SimGroup group(guest_collectives_setup(random, seed, natives, guests, policy));
    group.meet();
    std::deque<Operation> operations;
    for (std::size_t combination = random.below(kStride); combination < variants.size() * kDTypeCount * kCounts; combination += kStride) {
      const Variant& variant = variants[combination / (kDTypeCount * kCounts)];
      const auto dtype = static_cast<DType>(combination / kCounts % kDTypeCount);
      auto operation = operation_of(variant, dtype, combination % kCounts, random, group.options(0));
      if (operation) operations.push_back(std::move(*operation));
    }
    run(group, operations);
    group.close_cleanly();
  }
}

TEST_CASE("large buffers go through the owners' windows with the promised bits") {
  for (const auto seed : seeds(40)) {
    CAPTURE(seed);
    SimRandom random(seed + 80'000);
    const int natives = static_cast<int>(1 + random.below(4));
    const int guests = static_cast<int>(1 + random.below(8));
    GroupSetup setup = guest_collectives_setup(random, seed, natives, guests, PlacementPolicy::hub);
    setup.world.segment_bytes = 4096;
    setup.world.leaf_limits = {1000, 0, 100'000, pick<std::size_t>(random, {8000, 30'000})};
    SimGroup group(setup);
    group.meet();
    std::deque<Operation> operations;
    for (int i = 0; i < 6; ++i) {
      const Variant variant{pick(random, {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::broadcast})};
      auto operation = operation_of(variant, pick(random, {DType::f32, DType::bf16, DType::f64, DType::u8}), random.below(100'000), random,
                                    group.options(0));
      operation->stream = static_cast<std::uint16_t>(random.below(2));
      operations.push_back(std::move(*operation));
    }
    run(group, operations);
    group.close_cleanly();
  }
}

TEST_CASE("parts of a world know who of them is a guest") {
  GroupSetup setup;
  setup.size = 6;
  setup.world.guests = 3;
  setup.world.placement.policy = PlacementPolicy::hub;
  SimGroup sim(setup);
  sim.meet();
  const auto groups = sim.split(sim.groups(), {0, 1, 0, 1, 1, 1}, {5, 4, 3, 2, 1, 0});
  CHECK(world_ranks(*groups[0]) == std::vector<int>{2, 0});
  CHECK_FALSE(groups[0]->options().topology.has_guests());
  const WorldOptions& mixed = groups[1]->options();
  CHECK(world_ranks(*groups[1]) == std::vector<int>{5, 4, 3, 1});
  CHECK(mixed.guests == 3);
  for (int rank = 0; rank < 4; ++rank) CHECK(mixed.topology.is_guest(rank) == (rank < 3));
  const auto tabs = sim.split({nullptr, groups[1], nullptr, groups[3], groups[4], groups[5]}, {0, -1, 0, 0, 0, 0});
  CHECK(tabs[3]->options().topology.natives(3) == 0);
  std::vector<std::vector<float>> sums(6, std::vector<float>(5000, 1.0F)), tab_sums = sums;
  const auto start_sum = [&](GroupEngine& group, std::size_t rank, std::vector<float>& own) {
    sim.start_in(group, static_cast<int>(rank), 0, make_all_reduce(ReduceOp::sum, own, own, 1, group.options()));
  };
  for (const std::size_t rank : {1U, 3U, 4U, 5U}) start_sum(*groups[rank], rank, sums[rank]);
  for (const std::size_t rank : {3U, 4U, 5U}) start_sum(*tabs[rank], rank, tab_sums[rank]);
  REQUIRE(sim.run_until_done());
  for (const std::size_t rank : {1U, 3U, 4U, 5U}) CHECK(sums[rank] == std::vector<float>(5000, 4.0F));
  for (const std::size_t rank : {3U, 4U, 5U}) CHECK(tab_sums[rank] == std::vector<float>(5000, 3.0F));
  sim.close_cleanly();
}
