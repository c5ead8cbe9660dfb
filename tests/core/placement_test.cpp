#include <catch2/catch.hpp>

#include "core/plan/placement.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using Catch::Contains;

namespace {

Call call_of(CollectiveKind kind, int root = 0) {
  Call call;
  call.kind = kind;
  call.root = root;
  return call;
}

/// Returns the algorithm for `bytes` in a world with this many natives and guests.
Algorithm chosen(const Call& call, std::size_t bytes, int natives, int guests, const Placement& placement) {
  const int size = natives + guests;
  return choose_algorithm(call, bytes, size, Topology::of_world(size, guests), AlgorithmLimits{}, placement);
}

Placement with(LinkCost native, LinkCost guest) { return {PlacementPolicy::automatic, native, guest}; }

constexpr std::size_t kLarge = 64 << 20;

}  // namespace

TEST_CASE("natives alone choose by kind and size, whatever the placement") {
  for (const auto policy : {PlacementPolicy::automatic, PlacementPolicy::ring, PlacementPolicy::hub}) {
    for (int size = 2; size <= 8; ++size) {
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{100'000}, kLarge}) {
        for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind) {
          const Call call = call_of(static_cast<CollectiveKind>(kind));
          CHECK(chosen(call, bytes, size, 0, {policy, {}, {}}) == choose_algorithm(call.kind, bytes, size, AlgorithmLimits{}));
        }
      }
    }
  }
}

TEST_CASE("a placement that is set holds for every size") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{100'000}, kLarge}) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::broadcast, CollectiveKind::barrier}) {
      CHECK(chosen(call_of(kind), bytes, 2, 2, {PlacementPolicy::hub, {}, {}}) == Algorithm::hub);
      CHECK(chosen(call_of(kind), bytes, 2, 2, {PlacementPolicy::ring, {}, {}}) != Algorithm::hub);
      CHECK(chosen(call_of(kind), bytes, 2, 2, {PlacementPolicy::ring, {}, {}}) != Algorithm::doubling);
    }
    for (const auto kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather, CollectiveKind::gather, CollectiveKind::scatter,
                            CollectiveKind::all_to_all})
      CHECK(chosen(call_of(kind), bytes, 2, 2, {PlacementPolicy::hub, {}, {}}) == choose_algorithm(kind, bytes, 4, AlgorithmLimits{}));
  }
  CHECK(chosen(call_of(CollectiveKind::all_reduce), kLarge, 2, 2, {PlacementPolicy::ring, {}, {}}) == Algorithm::ring);
}

TEST_CASE("guests among themselves have no hub") {
  const Topology topology(std::vector<bool>{true, true, true});
  for (const auto policy : {PlacementPolicy::automatic, PlacementPolicy::hub}) {
    CHECK(choose_algorithm(call_of(CollectiveKind::all_reduce), kLarge, 3, topology, {}, {policy, {}, {}}) == Algorithm::ring);
    CHECK(choose_algorithm(call_of(CollectiveKind::barrier), 0, 3, topology, {}, {policy, {}, {}}) == Algorithm::exchange);
  }
}

TEST_CASE("large all-reduces go by the hub where the guests' links are slow or guests outnumber natives") {
  const Call sum = call_of(CollectiveKind::all_reduce);
  const Placement level = with({50e3, 1}, {50e3, 1});
  const Placement slow_guests = with({50e3, 1}, {1e6, 20});
  CHECK(chosen(sum, kLarge, 2, 2, level) == Algorithm::ring);
  CHECK(chosen(sum, kLarge, 4, 1, level) == Algorithm::ring);
  for (int natives = 1; natives <= 8; ++natives) {
    for (int guests = 1; guests <= 8; ++guests) {
      CAPTURE(natives, guests);
      CHECK(chosen(sum, kLarge, natives, guests, slow_guests) == Algorithm::hub);
    }
  }
  for (int guests = 2; guests <= 8; ++guests) CHECK(chosen(sum, kLarge, 1, guests, level) == Algorithm::hub);
}

TEST_CASE("small all-reduces and barriers spare pairs of guests two hops each") {
  const Placement placement = with({20e3, 1}, {100e3, 5});
  for (const std::size_t bytes : {0, 4, 1000}) {
    const Call call = call_of(bytes == 0 ? CollectiveKind::barrier : CollectiveKind::all_reduce);
    CHECK(chosen(call, bytes, 2, 2, placement) == Algorithm::hub);
    CHECK(chosen(call, bytes, 1, 3, placement) == Algorithm::hub);
    CHECK(chosen(call, bytes, 1, 1, placement) == Algorithm::exchange);
    CHECK(chosen(call, bytes, 8, 1, placement) == Algorithm::exchange);
  }
}

TEST_CASE("estimates follow the bytes of the busiest rank and the links in a row") {
  const Placement placement = with({10, 1}, {100, 2});
  const auto estimate = [&](CollectiveKind kind, Algorithm algorithm, std::size_t bytes, int natives, int guests, int root = 0) {
    const int size = natives + guests;
    return estimated_ns(call_of(kind, root), algorithm, bytes, size, Topology::of_world(size, guests, {1, 0, 0, 0}), placement);
  };
  // Without bytes, the estimate is the latency of the links in a row.
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::exchange, 0, 3, 0) == 10);
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::exchange, 0, 3, 1) == 100);
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::exchange, 0, 3, 2) == 200);
  CHECK(estimate(CollectiveKind::barrier, Algorithm::hub, 0, 3, 2) == 200);
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::direct, 0, 3, 2) == 400);
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::ring, 0, 2, 2) == Approx(1.5 * 400));
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::ring, 0, 1, 2) == Approx(4.0 / 3 * 400));
  CHECK(estimate(CollectiveKind::broadcast, Algorithm::direct, 0, 2, 2, 3) == 200);
  // With bytes, the busiest guest or the busiest native is added.
  const double guest_links = 200;
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::hub, 1'000'000, 2, 2) == Approx(guest_links + 2e6));
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::hub, 1'000'000, 1, 8) == Approx(guest_links + 8e6));
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::ring, 1'000'000, 2, 2) == Approx(600 + 3e6));
  // The native of a ring with two guests relays one edge beside its own.
  CHECK(estimate(CollectiveKind::all_reduce, Algorithm::ring, 3'000'000, 1, 2) == Approx(4.0 / 3 * 400 + 8e6));
  CHECK(estimate(CollectiveKind::broadcast, Algorithm::direct, 1'000'000, 1, 8) == Approx(100 + 8e6));
  CHECK(estimate(CollectiveKind::reduce, Algorithm::hub, 1'000'000, 2, 2) == Approx(110 + 2e6));
}

TEST_CASE("people are told what was chosen and why") {
  const Placement placement = with({50e3, 1}, {1e6, 20});
  const auto text = [](int natives, int guests, const Placement& how) {
    return describe_placement(natives + guests, Topology::of_world(natives + guests, guests), {}, how);
  };
  CHECK(text(2, 2, placement) == "2 native ranks, 2 browsers: large all-reduces by hub (estimated 1344 ms for 64 MiB; ring 2019 ms)");
  CHECK(text(1, 1, with({1, 1}, {1, 1})) == "1 native rank, 1 browser: large all-reduces by hub (estimated 67 ms for 64 MiB; ring 67 ms)");
  CHECK(text(4, 0, placement) == "4 native ranks: large all-reduces by ring");
  CHECK(text(1, 0, placement) == "1 native rank: nothing to move");
  Placement pinned = placement;
  pinned.policy = PlacementPolicy::ring;
  CHECK_THAT(text(2, 2, pinned), Contains("by ring (as the placement is set; estimated 2019 ms for 64 MiB; hub 1344 ms)"));
}

TEST_CASE("in rank order no ring rounds or reorders, and what does not depend on the order goes as ever") {
  Placement in_order;
  in_order.order = ReduceOrder::rank;
  const auto in_world = [&](CollectiveKind kind, DType dtype, ReduceOp op, int natives, double divisor = 1) {
    Call call = call_of(kind);
    call.dtype = dtype;
    call.op = op;
    call.divisor = divisor;
    return chosen(call, kLarge, natives, 0, in_order);
  };
  using Kind = CollectiveKind;
  CHECK(in_world(Kind::all_reduce, DType::f32, ReduceOp::sum, 4) == Algorithm::direct);
  CHECK(in_world(Kind::reduce_scatter, DType::complex64, ReduceOp::prod, 3) == Algorithm::direct);
  CHECK(in_world(Kind::reduce, DType::bf16, ReduceOp::sum, 3) == Algorithm::hub);
  for (const auto kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::reduce}) {
    CHECK(in_world(kind, DType::f32, ReduceOp::max, 4) == Algorithm::ring);
    CHECK(in_world(kind, DType::i64, ReduceOp::prod, 4) == Algorithm::ring);
    CHECK(in_world(kind, DType::f64, ReduceOp::sum, 2) == Algorithm::ring);
    CHECK(in_world(kind, DType::f64, ReduceOp::sum, 2, 2) == Algorithm::ring);
    CHECK(in_world(kind, DType::bf16, ReduceOp::sum, 2) == Algorithm::ring);
    CHECK(in_world(kind, DType::bf16, ReduceOp::sum, 2, 2) != Algorithm::ring);
  }
  CHECK(in_world(Kind::all_gather, DType::f32, ReduceOp::sum, 4) == Algorithm::ring);
  CHECK(in_world(Kind::broadcast, DType::f32, ReduceOp::sum, 4) == Algorithm::ring);
  Call reduce = call_of(Kind::reduce);
  reduce.dtype = DType::f32;
  const Topology guests_alone(std::vector<bool>(3, true));
  CHECK(choose_algorithm(reduce, kLarge, 3, guests_alone, {}, in_order) == Algorithm::direct);
  for (const auto policy : {PlacementPolicy::automatic, PlacementPolicy::ring, PlacementPolicy::hub}) {
    in_order.policy = policy;
    for (int guests = 1; guests < 5; ++guests) CHECK(chosen(reduce, kLarge, 2, guests, in_order) != Algorithm::ring);
  }
  CHECK(describe_placement(4, {}, {}, in_order) == "4 native ranks: large all-reduces in rank order, by direct");
}

TEST_CASE("orders have names") {
  for (std::size_t i = 0; i < kReduceOrderCount; ++i) {
    const auto order = static_cast<ReduceOrder>(i);
    CHECK(find_reduce_order(name_of(order)) == order);
  }
  CHECK_FALSE(find_reduce_order("").has_value());
}

TEST_CASE("policies have names") {
  for (std::size_t i = 0; i < kPlacementPolicyCount; ++i) {
    const auto policy = static_cast<PlacementPolicy>(i);
    CHECK(find_placement_policy(name_of(policy)) == policy);
  }
  CHECK_FALSE(find_placement_policy("rings").has_value());
  CHECK_FALSE(find_placement_policy("").has_value());
}

TEST_CASE("ranks that share machines go by machines, unless the order or the placement forbids it") {
  if (!kHasMachinePlans) return;
  Topology shared;
  shared.set_machines({0, 0, 1, 1}, {});
  const auto chosen_of = [&](const Call& call, std::size_t bytes, const Placement& placement = {}) {
    return choose_algorithm(call, bytes, 4, shared, AlgorithmLimits{}, placement);
  };
  Call sum = call_of(CollectiveKind::all_reduce);
  sum.dtype = DType::f32;
  CHECK(chosen_of(sum, 2 << 10) == Algorithm::doubling);
  for (const std::size_t bytes : {std::size_t{(2 << 10) + 4}, std::size_t{256 << 10}, kLarge}) {
    CHECK(chosen_of(sum, bytes) == Algorithm::machines);
    CHECK(chosen_of(call_of(CollectiveKind::broadcast, 3), bytes) == Algorithm::machines);
    for (const auto policy : {PlacementPolicy::ring, PlacementPolicy::hub})
      CHECK(chosen_of(sum, bytes, {policy, {}, {}}) == choose_algorithm(sum.kind, bytes, 4, AlgorithmLimits{}));
    Placement in_order;
    in_order.order = ReduceOrder::rank;
    CHECK(chosen_of(sum, bytes, in_order) != Algorithm::machines);
    Call largest = sum;
    largest.op = ReduceOp::max;
    CHECK(chosen_of(largest, bytes, in_order) == Algorithm::machines);
    Call blocks = sum;
    blocks.blocks = BlockFormat::int8;
    CHECK(chosen_of(blocks, bytes) == Algorithm::direct);
    for (const auto kind : {CollectiveKind::barrier, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::all_to_all})
      CHECK(chosen_of(call_of(kind), bytes) == choose_algorithm(kind, bytes, 4, AlgorithmLimits{}));
  }
  CHECK(describe_placement(4, shared, {}, {}) == "4 native ranks on 2 machines: large all-reduces by machines");
  CHECK(describe_placement(4, shared, {}, {PlacementPolicy::ring, {}, {}}) == "4 native ranks on 2 machines: large all-reduces by ring");
  Topology with_guest = Topology::of_world(4, 1);
  with_guest.set_machines({0, 0, 1, 3}, {});
  CHECK(choose_algorithm(sum, kLarge, 4, with_guest, AlgorithmLimits{}, {}) != Algorithm::machines);
}

TEST_CASE("parts go by machines where that spares a machine's port something") {
  if (!kHasMachinePlans) return;
  using Kind = CollectiveKind;
  const auto chosen_of = [](const std::vector<int>& machines, Call call, std::size_t bytes, const Placement& placement = {}) {
    Topology topology;
    topology.set_machines(machines, {});
    return choose_algorithm(call, bytes, static_cast<int>(machines.size()), topology, AlgorithmLimits{}, placement);
  };
  const std::vector<int> pairs{0, 0, 1, 1}, lonely{0, 0, 1}, uneven{0, 0, 1, 1, 2}, apart{0, 1, 0, 1};
  constexpr std::size_t kMiddle = 64 << 10;
  for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
    Call call = call_of(kind);
    call.dtype = DType::f32;
    // Each part passes the network once instead of twice: half of the buffer less.
    CHECK(chosen_of(pairs, call, 4 << 10) == Algorithm::direct);
    for (const std::size_t bytes : {std::size_t{(4 << 10) + 8}, kMiddle, kLarge}) {
      CHECK(chosen_of(pairs, call, bytes) == Algorithm::machines);
      CHECK(chosen_of(apart, call, bytes) == Algorithm::machines);
      CHECK(chosen_of(pairs, call, bytes, {PlacementPolicy::ring, {}, {}}) == choose_algorithm(kind, bytes, 4, AlgorithmLimits{}));
      // Two of three parts leave the first machine, also by machines.
      CHECK(chosen_of(lonely, call, bytes) == choose_algorithm(kind, bytes, 3, AlgorithmLimits{}));
    }
    // Along the ring four of five parts pass each edge, and by machines as many the first port.
    CHECK(chosen_of(uneven, call, kMiddle) == Algorithm::machines);
    CHECK(chosen_of(uneven, call, kLarge) == Algorithm::ring);
    // By the ring both edges carry all but what one rank has.
    call.counts = {1000, 0, 0, 0};
    CHECK(chosen_of(pairs, call, kLarge) == Algorithm::ring);
    call.counts = {1000, 0, 500, 500};
    CHECK(chosen_of(pairs, call, kLarge) == Algorithm::machines);
    call.counts = {0, 0, 0, 0};
    CHECK(chosen_of(pairs, call, 0) == Algorithm::direct);
    call.counts = {};
    call.blocks = BlockFormat::int8;
    CHECK(chosen_of(pairs, call, kLarge) != Algorithm::machines);
  }
  Call reduce = call_of(Kind::reduce, 3);
  CHECK(chosen_of(pairs, reduce, 2 << 10) == Algorithm::direct);
  CHECK(chosen_of(pairs, reduce, (2 << 10) + 4) == Algorithm::machines);
  CHECK(chosen_of(pairs, reduce, kLarge) == Algorithm::ring);
  CHECK(chosen_of({0, 1, 2, 2}, reduce, kMiddle) == Algorithm::direct);
  CHECK(chosen_of({0, 0, 1, 2}, reduce, kMiddle) == Algorithm::machines);
  Placement in_order;
  in_order.order = ReduceOrder::rank;
  for (const auto kind : {Kind::reduce, Kind::reduce_scatter}) {
    Call mean = call_of(kind);
    mean.dtype = DType::f16;
    CHECK(chosen_of(pairs, mean, kMiddle) == Algorithm::machines);
    CHECK(chosen_of(pairs, mean, kMiddle, in_order) == Algorithm::direct);
    mean.divisor = 4;
    CHECK(chosen_of(pairs, mean, kMiddle) == Algorithm::direct);
    mean.dtype = DType::bf16;
    CHECK(chosen_of(pairs, mean, kMiddle) == Algorithm::machines);
  }
  Call gather = call_of(Kind::all_gather);
  gather.dtype = DType::f32;
  CHECK(chosen_of(pairs, gather, kMiddle, in_order) == Algorithm::machines);
}

namespace {

Topology with_speeds(const std::vector<std::uint32_t>& speeds, int guests = 0) {
  Topology topology = Topology::of_world(static_cast<int>(speeds.size()), guests);
  topology.set_speeds(speeds);
  return topology;
}

}  // namespace

TEST_CASE("middle and large all-reduces of ranks of unequal speed go by owners, and nothing else does") {
  const Topology topology = with_speeds({1024, 1024, 256, 1024});
  const Placement placement = with({25e3, 8}, {});
  for (const auto order : {ReduceOrder::any, ReduceOrder::rank}) {
    Placement ordered = placement;
    ordered.order = order;
    for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind) {
      for (const std::size_t bytes : {std::size_t{4}, std::size_t{100'000}, std::size_t{1} << 20, kLarge}) {
        Call call = call_of(static_cast<CollectiveKind>(kind));
        call.dtype = DType::f32;
        const Algorithm equal = choose_algorithm(call, bytes, 4, {}, {}, ordered);
        const bool by_owners = call.kind == CollectiveKind::all_reduce && bytes > 4;
        CAPTURE(kind, bytes);
        CHECK(choose_algorithm(call, bytes, 4, topology, {}, ordered) == (by_owners ? Algorithm::hub : equal));
      }
    }
  }
  Call blocks = call_of(CollectiveKind::all_reduce);
  blocks.dtype = DType::f32;
  blocks.blocks = BlockFormat::int8;
  CHECK(choose_algorithm(blocks, kLarge, 4, topology, {}, placement) == Algorithm::hub);
}

TEST_CASE("the estimate of parts by speed is the time of the slow rank for one buffer") {
  const Call sum = call_of(CollectiveKind::all_reduce);
  const Placement placement = with({0, 8}, {});
  const auto ratio = [&](const std::vector<std::uint32_t>& speeds) {
    const Topology topology = with_speeds(speeds);
    const int size = static_cast<int>(speeds.size());
    return estimated_ns(sum, Algorithm::ring, kLarge, size, topology, placement) /
           estimated_ns(sum, Algorithm::hub, kLarge, size, topology, placement);
  };
  CHECK(ratio({1024, 1024, 1024, 256}) == Approx(1.5));
  CHECK(ratio({1024, 1024, 512, 1024, 1024, 1024, 1024, 1024}) == Approx(1.75));
  CHECK(estimated_ns(sum, Algorithm::hub, kLarge, 4, with_speeds({1024, 1024, 1024, 256}), placement) == Approx(4.0 * 8 * kLarge));
}

TEST_CASE("the description of a placement names slow ranks") {
  const Topology topology = with_speeds({1024, 1024, 256, 724});
  const std::string text = describe_placement(4, topology, {}, with({25e3, 8}, {}));
  CHECK_THAT(text, Contains("4 native ranks: large all-reduces by hub") &&
                       Contains("rank 2 has 0.25 of the others' speed and owns no part") &&
                       Contains("rank 3 has 0.71 of the others' speed and owns a smaller part"));
}

TEST_CASE("the description of a placement names no slow ranks where large all-reduces go along a ring, whose parts stay equal") {
  const std::string slow = "owns no part";
  for (const int guests : {0, 1}) {
    std::vector<std::uint32_t> speeds{1024, 1024, 256, 1024};
    speeds.resize(static_cast<std::size_t>(4 + guests), kFullSpeed);
    Topology topology = Topology::of_world(4 + guests, guests);
    topology.set_speeds(speeds);
    Placement how = with({25e3, 8}, {25e3, 8});
    how.parts = PartsPolicy::measured;
    CHECK_THAT(describe_placement(4 + guests, topology, {}, how), Contains("by hub") && Contains(slow));
    how.policy = PlacementPolicy::ring;
    CHECK_THAT(describe_placement(4 + guests, topology, {}, how), Contains("by ring") && !Contains(slow));
    how.policy = PlacementPolicy::automatic;
    how.parts = PartsPolicy::passive;
    if (guests == 0) CHECK_THAT(describe_placement(4, topology, {}, how), Contains("by ring") && !Contains(slow));
    how.order = ReduceOrder::rank;
    CHECK_THAT(describe_placement(4 + guests, topology, {}, how), Contains("by hub") && Contains(slow));
  }
}

TEST_CASE("parts policies have names") {
  for (const auto policy : {PartsPolicy::even, PartsPolicy::measured, PartsPolicy::passive})
    CHECK(find_parts_policy(name_of(policy)) == policy);
  CHECK_FALSE(find_parts_policy("").has_value());
}

TEST_CASE("passive parts change how a call is divided, and no order of additions") {
  const auto adds_by_rank = [](Algorithm algorithm) { return algorithm == Algorithm::direct || algorithm == Algorithm::hub; };
  int changed = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimRandom random(seed);
    const int natives = static_cast<int>(3 + random.below(6)), guests = static_cast<int>(random.below(3)), size = natives + guests;
    const Topology even = Topology::of_world(size, guests);
    Topology slow = even;
    std::vector<std::uint32_t> speeds(static_cast<std::size_t>(size), kFullSpeed);
    speeds[random.below(static_cast<std::uint64_t>(natives))] = static_cast<std::uint32_t>(1 + random.below(700));
    slow.set_speeds(speeds);
    Placement passive, measured;
    passive.parts = PartsPolicy::passive;
    measured.parts = PartsPolicy::measured;
    passive.policy = measured.policy = static_cast<PlacementPolicy>(random.below(kPlacementPolicyCount));
    passive.order = measured.order = static_cast<ReduceOrder>(random.below(kReduceOrderCount));
    for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind)
      for (const DType dtype : {DType::i32, DType::f32, DType::f16})
        for (const bool has_blocks : {false, true})
          for (std::size_t bytes = 1; bytes < std::size_t{1} << 27; bytes *= 3) {
            Call call;
            call.kind = static_cast<CollectiveKind>(kind);
            call.dtype = dtype;
            call.divisor = random.below(2) == 0 ? 1.0 : size;
            if (has_blocks && dtype == DType::f32 && call.kind == CollectiveKind::all_reduce) call.blocks = BlockFormat::int8;
            CAPTURE(seed, natives, guests, kind, dtype, has_blocks, bytes);
            const auto chosen = [&](const Topology& topology, const Placement& how) {
              return choose_algorithm(call, bytes, size, topology, {}, how);
            };
            const Algorithm now = chosen(slow, passive), before = chosen(even, passive);
            CHECK(before == chosen(even, measured));
            const bool depends = dtype != DType::i32 && reduces(call.kind);
            if (!depends)
              CHECK(now == chosen(slow, measured));
            else
              CHECK((now == before || (adds_by_rank(now) && adds_by_rank(before))));
            (depends && now != before ? changed : kept) += 1;
          }
  }
  CHECK(changed > 0);
  CHECK(kept > 0);
}
