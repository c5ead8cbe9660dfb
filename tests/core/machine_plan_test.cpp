// Tests of the plans for ranks that share machines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/core/plan_replay.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Returns all ways to divide ranks among several machines, of which one at least has several, numbered by their lowest ranks.
std::vector<std::vector<int>> all_machines(int size) {
  std::vector<std::vector<int>> all{{0}};
  for (int rank = 1; rank < size; ++rank) {
    std::vector<std::vector<int>> longer;
    for (const auto& machines : all) {
      for (int machine = 0; machine <= *std::max_element(machines.begin(), machines.end()) + 1; ++machine) {
        longer.push_back(machines);
        longer.back().push_back(machine);
      }
    }
    all = std::move(longer);
  }
  const auto is_shared = [&](const std::vector<int>& machines) {
    const int last = *std::max_element(machines.begin(), machines.end());
    return last > 0 && last < size - 1;
  };
  all.erase(std::partition(all.begin(), all.end(), is_shared), all.end());
  return all;
}

/// Returns from 1 to `most` machines with ranks in any order, of which one at least has several.
Topology random_machines(SimRandom& random, int size) {
  Topology topology;
  while (!topology.has_shared_machines()) {
    const std::uint64_t most = 2 + random.below(static_cast<std::uint64_t>(size) - 1);
    std::vector<int> machines;
    for (int rank = 0; rank < size; ++rank) machines.push_back(static_cast<int>(random.below(most)));
    topology.set_machines(machines, {});
  }
  return topology;
}

/// Replays the kinds whose parts are each rank's own, or the root's.
void replay_parts(const Topology& topology, int size, std::uint64_t rows, const std::vector<std::uint64_t>& counts, int root) {
  using Kind = CollectiveKind;
  replay(test::call_of(Kind::reduce, Algorithm::machines, rows, 1, root), size, false, topology);
  for (const std::uint64_t width : {1U, 3U}) {
    replay(test::call_of(Kind::reduce_scatter, Algorithm::machines, rows, width), size, false, topology);
    replay(test::call_of(Kind::all_gather, Algorithm::machines, rows, width), size, false, topology);
  }
  Call call = test::call_of(Kind::reduce_scatter, Algorithm::machines, std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  call.counts = counts;
  replay(call, size, false, topology);
  call.kind = Kind::all_gather;
  replay(call, size, false, topology);
  // Each rank has the part of the rank before it.
  call.root = 1;
  replay(call, size, false, topology);
}

/// What the ranks of each machine send to other machines, and what comes to them, by the plans of all ranks.
struct Crossing {
  std::vector<std::size_t> out, in;
};
Crossing crossing(Call call, int size, const Topology& topology) {
  const auto machines = static_cast<std::size_t>(topology.machines());
  Crossing bytes{std::vector<std::size_t>(machines), std::vector<std::size_t>(machines)};
  for (int rank = 0; rank < size; ++rank) {
    Plan plan;
    make_plan(call, rank, size, topology, call.kind == CollectiveKind::all_reduce, plan);
    for (const PeerSteps& steps : plan.peers) {
      const int from = topology.machine_of(rank), to = topology.machine_of(steps.peer);
      for (std::uint32_t i = 0; i < steps.send_count && from != to; ++i) {
        bytes.out[static_cast<std::size_t>(from)] += plan.sends[steps.first_send + i].from.bytes;
        bytes.in[static_cast<std::size_t>(to)] += plan.sends[steps.first_send + i].from.bytes;
      }
    }
  }
  return bytes;
}

/// Limits with which small buffers go as large ones do.
constexpr MachineLimits kOneSlice{}, kExchanged{0, 1, 1000, 1000, 1000}, kDirect{0, 16, 1000, 0, 0}, kChained{0, 16, 0, 0, 0},
    kChainedExchange{0, 20, 0, 1000, 1000};

}  // namespace

TEST_CASE("by machines every contribution comes once, however ranks share them") {
  using Kind = CollectiveKind;
  test::Cases cases;
  for (int size = 3; size <= 6; ++size) {
    for (const auto& machines : all_machines(size)) {
      if (!cases.has_next()) continue;
      Topology topology;
      CAPTURE(machines);
      for (const MachineLimits& limits : {kOneSlice, kExchanged, kDirect, kChained, kChainedExchange}) {
        topology.set_machines(machines, limits);
        for (const std::uint64_t rows : {0U, 1U, 17U, 100U})
          for (const bool in_place : {false, true}) replay(call_of(Kind::all_reduce, Algorithm::machines, rows), size, in_place, topology);
        for (int root = 0; root < size; ++root) replay(call_of(Kind::broadcast, Algorithm::machines, 17, 1, root), size, true, topology);
      }
    }
  }
  for (const int on_each : {2, 3, 4}) {
    const int size = 4 * on_each;
    for (const MachineLimits& limits : {kExchanged, kDirect, kChained}) {
      std::vector<int> machines;
      for (int rank = 0; rank < size; ++rank) machines.push_back(rank / on_each);
      Topology topology;
      topology.set_machines(machines, limits);
      replay(call_of(Kind::all_reduce, Algorithm::machines, 1000), size, true, topology);
    }
  }
}

TEST_CASE("by machines each byte of an all-reduce passes the network twice for a machine, less its own share") {
  constexpr std::size_t kRows = 3 * 16 * 64;
  for (const auto& machines : {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3}}) {
    for (const MachineLimits& limits : {kOneSlice, kDirect, kChained}) {
      Topology topology;
      topology.set_machines(machines, limits);
      const int size = static_cast<int>(machines.size());
      const auto count = static_cast<std::size_t>(topology.machines());
      for (const std::size_t bytes : crossing(call_of(CollectiveKind::all_reduce, Algorithm::machines, kRows), size, topology).out) {
        CAPTURE(machines);
        // Up to a limit whole slices are exchanged, which is no more between two machines.
        const bool is_exchanged = count == 2 || kRows * (count - 1) * (count - 2) / count <= limits.excess_bytes;
        CHECK(bytes == (is_exchanged ? kRows * (count - 1) : 2 * kRows * (count - 1) / count));
      }
    }
  }
}

TEST_CASE("by machines every part comes and goes once, however ranks share them") {
  test::Cases cases;
  for (int size = 3; size <= 6; ++size) {
    for (const auto& machines : all_machines(size)) {
      if (!cases.has_next()) continue;
      Topology topology;
      topology.set_machines(machines, {});
      CAPTURE(machines);
      const auto ranks = static_cast<std::size_t>(size);
      for (int root = 0; root < size; ++root) {
        std::vector<std::uint64_t> counts(ranks, 0);
        counts[static_cast<std::size_t>(root)] = 5;
        replay_parts(topology, size, static_cast<std::uint64_t>(root) * 3, counts, root);
      }
    }
  }
  for (const std::uint64_t seed : test::seeds(40)) {
    SimRandom random(seed);
    const int size = static_cast<int>(3 + random.below(22));
    const Topology topology = random_machines(random, size);
    std::vector<std::uint64_t> counts;
    for (int rank = 0; rank < size; ++rank) counts.push_back(random.below(4));
    CAPTURE(seed, size, topology.machines());
    replay_parts(topology, size, random.below(60), counts, static_cast<int>(random.below(static_cast<std::uint64_t>(size))));
  }
}

TEST_CASE("by machines each part passes the network once for each other machine") {
  for (const std::uint64_t seed : test::seeds(100)) {
    SimRandom random(seed);
    const int size = static_cast<int>(3 + random.below(22));
    const Topology topology = random_machines(random, size);
    CAPTURE(seed, size, topology.machines());
    const auto machines = static_cast<std::size_t>(topology.machines());
    std::vector<std::uint64_t> counts;
    std::vector<std::size_t> own(machines);
    for (int rank = 0; rank < size; ++rank) {
      counts.push_back(random.below(1000));
      own[static_cast<std::size_t>(topology.machine_of(rank))] += counts.back();
    }
    const std::size_t all = std::accumulate(own.begin(), own.end(), std::size_t{0});
    Call call = call_of(CollectiveKind::all_gather, Algorithm::machines, all);
    call.counts = counts;
    call.dtype = DType::u8;
    const Crossing gathered = crossing(call, size, topology);
    call.kind = CollectiveKind::reduce_scatter;
    const Crossing scattered = crossing(call, size, topology);
    call = call_of(CollectiveKind::reduce, Algorithm::machines, 1000, 1, static_cast<int>(random.below(static_cast<std::uint64_t>(size))));
    const Crossing rooted = crossing(call, size, topology);
    for (std::size_t machine = 0; machine < machines; ++machine) {
      CHECK(gathered.out[machine] == own[machine] * (machines - 1));
      CHECK(gathered.in[machine] == all - own[machine]);
      CHECK(scattered.out == gathered.in);
      CHECK(scattered.in == gathered.out);
      const bool has_root = topology.machine_of(call.root) == static_cast<int>(machine);
      CHECK(rooted.out[machine] == (has_root ? 0 : 1000));
      CHECK(rooted.in[machine] == (has_root ? 1000 * (machines - 1) : 0));
    }
  }
}

TEST_CASE("by machines the ranks of a machine share the parts of the others, whoever has which number") {
  for (const std::uint64_t seed : test::seeds(40)) {
    SimRandom random(seed);
    const int size = static_cast<int>(3 + random.below(22));
    const Topology topology = random_machines(random, size);
    const Call call = call_of(CollectiveKind::all_gather, Algorithm::machines, 10);
    for (int rank = 0; rank < size; ++rank) {
      Plan plan;
      make_plan(call, rank, size, topology, false, plan);
      int parts = 0;
      for (const PeerSteps& steps : plan.peers)
        if (topology.machine_of(steps.peer) != topology.machine_of(rank)) parts += static_cast<int>(steps.receive_count);
      const auto here = static_cast<int>(topology.ranks_on(topology.machine_of(rank)).size());
      CAPTURE(seed, rank);
      CHECK(parts >= (size - here) / here);
      CHECK(parts <= (size - here + here - 1) / here);
    }
  }
}
