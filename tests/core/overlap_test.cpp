#include <catch2/catch.hpp>

#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Returns a slow network, on which a large operation takes long, and a small one shows whether it had to wait for it.
GroupSetup slow_network(int size) {
  GroupSetup setup;
  setup.size = size;
  setup.paths = PathOptions::calm();
  setup.paths.bytes_per_second = {10'000'000, 10'000'000};
  setup.world.segment_bytes = 64 << 10;
  return setup;
}

struct Large {
  std::vector<std::vector<float>> values;
  std::vector<Outcome*> outcomes;

  void start(SimGroup& sim, const std::vector<GroupEngine*>& groups, std::uint16_t stream) {
    values.assign(groups.size(), std::vector<float>(4 << 20, 1.0F));
    for (std::size_t rank = 0; rank < groups.size(); ++rank)
      outcomes.push_back(&sim.start_in(*groups[rank], static_cast<int>(rank), stream,
                                       make_all_reduce(ReduceOp::sum, values[rank], values[rank], 1, groups[rank]->options())));
  }
  Instant first_end() const {
    Instant first = outcomes[0]->ended;
    for (const Outcome* outcome : outcomes) first = std::min(first, outcome->ended);
    return first;
  }
};

}  // namespace

TEST_CASE("a small operation ends while a large one on another stream or group is under way") {
  const bool other_group = GENERATE(false, true);
  const bool large_in_part = GENERATE(false, true);
  if (large_in_part && !other_group) return;
  CAPTURE(other_group, large_in_part);
  SimGroup sim(slow_network(4));
  sim.meet();
  const auto world = sim.groups();
  const auto pairs = sim.split(world, {0, 0, 1, 1});
  Large large;
  large.start(sim, large_in_part ? pairs : world, 0);
  sim.sim().run_for(Duration::milliseconds(50));
  const auto& small_groups = other_group && !large_in_part ? pairs : world;
  std::vector<std::vector<float>> small(4, std::vector<float>(10, 1.0F));
  std::vector<Outcome*> outcomes;
  for (int round = 0; round < 3; ++round) {
    for (int rank = 0; rank < 4; ++rank) {
      GroupEngine& group = *small_groups[static_cast<std::size_t>(rank)];
      auto& own = small[static_cast<std::size_t>(rank)];
      outcomes.push_back(&sim.start_in(group, rank, other_group ? 0 : 1, make_all_reduce(ReduceOp::max, own, own, 1, group.options())));
    }
  }
  REQUIRE(sim.run_until_done());
  for (const Outcome* outcome : outcomes) {
    INFO(outcome->status.text());
    REQUIRE(outcome->status.ok());
    CHECK(outcome->ended < large.first_end());
  }
  // Each small operation waits only for the bytes that a link has already taken, which is far less than the large one's time.
  const Duration large_time = large.first_end() - large.outcomes[0]->started;
  CHECK(outcomes.back()->ended - outcomes.back()->started < large_time / 2);
  sim.close_cleanly();
}
