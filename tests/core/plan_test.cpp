#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "tests/core/plan_replay.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Returns shares of every sort: equal, none for some, all for one, and uneven ones.
std::vector<std::vector<std::uint64_t>> counts_for(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<std::vector<std::uint64_t>> all{std::vector<std::uint64_t>(ranks, 0), std::vector<std::uint64_t>(ranks, 5)};
  for (std::size_t seed = 1; seed < 5; ++seed) {
    all.emplace_back();
    for (std::size_t r = 0; r < ranks; ++r) all.back().push_back(r * r * seed % 7);
  }
  all.emplace_back(ranks, 0).back() = 40;
  all.emplace_back(ranks, 0).front() = 40;
  return all;
}

}  // namespace

TEST_CASE("the plans of all ranks fit each other and bring every contribution once") {
  using Kind = CollectiveKind;
  for (int size = 2; size <= 8; ++size) {
    for (const std::uint64_t rows : {0U, 1U, 2U, 5U, 8U, 15U, 16U, 17U, 33U, 64U, 100U, 131U}) {
      for (const auto algorithm : {Algorithm::exchange, Algorithm::direct, Algorithm::ring}) {
        for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, algorithm, rows), size, in_place);
        if (algorithm == Algorithm::exchange) continue;
        for (const std::uint64_t width : {0U, 1U, 3U}) replay(call_of(Kind::reduce_scatter, algorithm, rows, width), size, false);
        replay(call_of(Kind::all_gather, algorithm, rows), size, false);
        for (int root = 0; root < size; ++root) {
          replay(call_of(Kind::broadcast, algorithm, rows, 1, root), size, true);
          replay(call_of(Kind::reduce, algorithm, rows, 1, root), size, false);
        }
      }
    }
    replay(call_of(Kind::barrier, Algorithm::exchange, 0), size, true);
  }
  for (const int size : {2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 24, 31}) {
    replay(call_of(Kind::barrier, Algorithm::doubling, 0), size, true);
    for (const std::uint64_t rows : {0U, 1U, 17U, 100U})
      for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::doubling, rows), size, in_place);
  }
}

TEST_CASE("a ring's pieces fit each other and bring every contribution once, each one step behind the one before") {
  for (int size = 2; size <= 8; ++size)
    for (const std::uint64_t rows : {0U, 1U, 64U, 131U, 1000U})
      for (const std::size_t piece_bytes : {1U, 100U, 300U, 100'000U})
        for (const bool in_place : {false, true}) {
          Topology topology;
          topology.set_ring_limits({piece_bytes});
          replay(call_of(CollectiveKind::all_reduce, Algorithm::ring, rows), size, in_place, topology);
        }
}

TEST_CASE("reductions of less than 8 MiB are for the caches") {
  const std::uint64_t rows = (8 << 20) / size_of(call_of(CollectiveKind::all_reduce, Algorithm::ring, 1).dtype);
  const auto for_caches = [](CollectiveKind kind, std::uint64_t of_rows) {
    Plan plan;
    make_plan(call_of(kind, Algorithm::direct, of_rows), 0, 2, {}, false, plan);
    return plan.reduces_in_caches;
  };
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::reduce}) {
    CHECK(for_caches(kind, rows - 1));
    CHECK_FALSE(for_caches(kind, rows));
  }
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::broadcast}) CHECK_FALSE(for_caches(kind, 1000));
}

TEST_CASE("the second piece of a ring's part leaves behind the first step of the first piece") {
  Topology topology;
  topology.set_ring_limits({256});
  const Call call = call_of(CollectiveKind::all_reduce, Algorithm::ring, 1024);
  const std::size_t part_bytes = call.bytes() / 2, pieces = part_bytes / 256;
  Plan plan;
  make_plan(call, 0, 2, topology, true, plan);
  REQUIRE(plan.sends.size() == 2 * pieces);
  CHECK(plan.sends[0].from == Region{Buffer::input, part_bytes, 256});
  CHECK(plan.sends[1].from == Region{Buffer::output, 0, 256});
  CHECK(plan.sends[1].after == 0);
  CHECK(plan.sends[2].from == Region{Buffer::input, part_bytes + 256, 256});
  CHECK(plan.sends[2].after == kAtOnce);
}

TEST_CASE("the plans of parts put every part in its place") {
  using Kind = CollectiveKind;
  for (int size = 2; size <= 8; ++size) {
    for (const std::uint64_t width : {0U, 1U, 3U}) {
      for (const std::uint64_t rows : {0U, 1U, 7U, 20U}) {
        replay(call_of(Kind::all_to_all, Algorithm::direct, rows, width), size, false);
        for (int root = 0; root < size; ++root) {
          replay(call_of(Kind::gather, Algorithm::direct, rows, width, root), size, false);
          replay(call_of(Kind::scatter, Algorithm::direct, rows, width, root), size, false);
        }
      }
      for (const auto& counts : counts_for(size)) {
        Call call = call_of(Kind::all_gather, Algorithm::direct, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), width);
        call.counts = counts;
        for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
          for (const auto algorithm : {Algorithm::direct, Algorithm::ring}) {
            call.kind = kind;
            call.algorithm = algorithm;
            replay(call, size, false);
          }
        }
        call.kind = Kind::all_gather;
        call.root = 1;
        for (const auto algorithm : {Algorithm::direct, Algorithm::ring}) {
          call.algorithm = algorithm;
          replay(call, size, false);
        }
        call.algorithm = Algorithm::direct;
        for (call.root = 0; call.root < size; ++call.root) {
          for (const auto kind : {Kind::gather, Kind::scatter}) {
            call.kind = kind;
            replay(call, size, false);
          }
        }
      }
      Call pairwise = call_of(Kind::all_to_all, Algorithm::direct, 0, width);
      pairwise.counts.assign(2 * static_cast<std::size_t>(size), 0);
      replay(pairwise, size, false);
    }
  }
}

TEST_CASE("the hub brings every contribution once, whoever is a guest, and nothing passes between guests") {
  using Kind = CollectiveKind;
  test::Cases cases;
  for (int natives = 1; natives <= 4; ++natives) {
    for (int guests = 0; guests <= 8; ++guests) {
      const int size = natives + guests;
      if (size < 2 || !cases.has_next()) continue;
      for (const LeafLimits limits : {LeafLimits{}, LeafLimits{1, 0, 16, 16}, LeafLimits{20, 200, 1000, 8}}) {
        const Topology topology = Topology::of_world(size, guests, limits);
        replay(call_of(Kind::barrier, Algorithm::hub, 0), size, true, topology);
        for (const std::uint64_t rows : {0U, 1U, 5U, 16U, 17U, 40U, 100U, 131U}) {
          for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::hub, rows), size, in_place, topology);
          for (const int root : {0, natives - 1, size - 1}) {
            replay(call_of(Kind::reduce, Algorithm::hub, rows, 1, root), size, false, topology);
            replay(call_of(Kind::broadcast, Algorithm::hub, rows, 1, root), size, true, topology);
          }
        }
      }
      replay(call_of(Kind::all_reduce, Algorithm::hub, 3000), size, true, Topology::of_world(size, guests));
    }
  }
}

TEST_CASE("parts by speed bring every contribution once, whichever ranks are slow") {
  using Kind = CollectiveKind;
  for (int size = 3; size <= 8; ++size) {
    for (int guests = 0; guests <= std::min(size - 1, 2); ++guests) {
      for (const std::uint64_t seed : test::seeds(6)) {
        Topology topology = Topology::of_world(size, guests, seed % 2 == 0 ? LeafLimits{} : LeafLimits{1, 0, 16, 16});
        std::vector<std::uint32_t> speeds;
        for (int rank = 0; rank < size; ++rank)
          speeds.push_back(static_cast<std::uint32_t>(1 + (seed * 977 + static_cast<std::uint64_t>(rank) * 389) % kFullSpeed));
        topology.set_speeds(speeds);
        for (const std::uint64_t rows : {0U, 1U, 17U, 100U, 131U, 5000U}) {
          if (rows == 5000 && size > 4) continue;
          for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::hub, rows), size, in_place, topology);
          if (rows == 5000) continue;
          for (int root = 0; root < size; ++root) {
            replay(call_of(Kind::reduce, Algorithm::hub, rows, 1, root), size, false, topology);
            replay(call_of(Kind::broadcast, Algorithm::hub, rows, 1, root), size, true, topology);
          }
        }
        replay(call_of(Kind::barrier, Algorithm::hub, 0), size, true, topology);
      }
    }
  }
}

TEST_CASE("a slow rank sends and receives each byte of an all-reduce once") {
  for (const int size : {3, 4, 8}) {
    Topology topology;
    std::vector<std::uint32_t> speeds(static_cast<std::size_t>(size), kFullSpeed);
    speeds[1] = 256;
    topology.set_speeds(speeds);
    Call call = call_of(CollectiveKind::all_reduce, Algorithm::hub, 1'000'000);
    call.dtype = DType::f32;
    Plan plan;
    make_plan(call, 1, size, topology, true, plan);
    std::size_t sent = 0, received = 0;
    for (const Send& send : plan.sends) sent += send.from.bytes;
    for (const Receive& receive : plan.receives) received += receive.into.bytes;
    CHECK(sent == call.bytes());
    CHECK(received == call.bytes());
    CHECK(plan.combines.empty());
    CHECK(plan.scratch_bytes == 0);
  }
}

TEST_CASE("every plan fits whoever is a guest") {
  using Kind = CollectiveKind;
  for (int natives = 0; natives <= 4; ++natives) {
    for (int guests = 1; guests <= 5; ++guests) {
      const int size = natives + guests;
      if (size < 2) continue;
      std::vector<bool> is_guest(static_cast<std::size_t>(size), true);
      for (int native = 0; native < natives; ++native) is_guest[static_cast<std::size_t>(native * size / natives)] = false;
      const Topology topology(is_guest, {1, 0, 16, 16});
      for (const std::uint64_t rows : {0U, 1U, 17U, 100U}) {
        replay(call_of(Kind::all_reduce, Algorithm::ring, rows), size, true, topology);
        if (natives > 0) replay(call_of(Kind::all_reduce, Algorithm::hub, rows), size, false, topology);
        replay(call_of(Kind::reduce_scatter, Algorithm::ring, rows, 3), size, false, topology);
        replay(call_of(Kind::all_gather, Algorithm::ring, rows), size, false, topology);
        replay(call_of(Kind::all_to_all, Algorithm::direct, rows), size, false, topology);
        for (int root = 0; root < size; ++root) {
          for (const auto kind : {Kind::broadcast, Kind::reduce}) {
            replay(call_of(kind, Algorithm::ring, rows, 1, root), size, kind == Kind::broadcast, topology);
            if (natives > 0) replay(call_of(kind, Algorithm::hub, rows, 1, root), size, kind == Kind::broadcast, topology);
          }
        }
      }
      for (const auto& counts : counts_for(size)) {
        Call call = call_of(Kind::all_gather, Algorithm::ring, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
        call.counts = counts;
        for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
          call.kind = kind;
          replay(call, size, false, topology);
        }
      }
    }
  }
}
