// Tests of the plans for ranks that share machines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/core/plan_replay.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Returns all ways to divide ranks among machines that are numbered by their lowest ranks.
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
  return all;
}

/// Limits with which small buffers go as large ones do.
constexpr MachineLimits kOneSlice{}, kExchanged{0, 1, 1000, 1000, 1000}, kDirect{0, 16, 1000, 0, 0}, kChained{0, 16, 0, 0, 0},
    kChainedExchange{0, 20, 0, 1000, 1000};

}  // namespace

TEST_CASE("by machines every contribution comes once, however ranks share them") {
  using Kind = CollectiveKind;
  for (int size = 3; size <= 6; ++size) {
    for (const auto& machines : all_machines(size)) {
      Topology topology;
      topology.set_machines(machines, {});
      if (!topology.has_shared_machines()) continue;
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

TEST_CASE("by machines each byte passes the network twice for a machine, less its own share") {
  constexpr std::size_t kRows = 3 * 16 * 64;
  for (const auto& machines : {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1, 2, 2}, {0, 0, 1, 1, 2, 2, 3, 3}}) {
    for (const MachineLimits& limits : {kOneSlice, kDirect, kChained}) {
      Topology topology;
      topology.set_machines(machines, limits);
      const int size = static_cast<int>(machines.size());
      const auto count = static_cast<std::size_t>(topology.machines());
      std::vector<std::size_t> sent(count);
      Call call = call_of(CollectiveKind::all_reduce, Algorithm::machines, kRows);
      for (int rank = 0; rank < size; ++rank) {
        Plan plan;
        make_plan(call, rank, size, topology, true, plan);
        for (const PeerSteps& steps : plan.peers) {
          if (topology.machine_of(steps.peer) == topology.machine_of(rank)) continue;
          for (std::uint32_t i = 0; i < steps.send_count; ++i)
            sent[static_cast<std::size_t>(topology.machine_of(rank))] += plan.sends[steps.first_send + i].from.bytes;
        }
      }
      for (const std::size_t bytes : sent) {
        CAPTURE(machines);
        // Up to a limit whole slices are exchanged, which is no more between two machines.
        const bool is_exchanged = count == 2 || kRows * (count - 1) * (count - 2) / count <= limits.excess_bytes;
        CHECK(bytes == (is_exchanged ? kRows * (count - 1) : 2 * kRows * (count - 1) / count));
      }
    }
  }
}
