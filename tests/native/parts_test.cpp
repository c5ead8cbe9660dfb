// Tests of parts by bandwidth in worlds that lose ranks and grow.
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "tests/native/joiners.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

void follows_links(native::WorldConfig& config) {
  config.options.elastic = true;
  config.options.placement.parts = PartsPolicy::measured;
  config.on_split = OnSplit::wait;
  config.status = false;
}

/// What rank 0 does when links have turned slow or fast. These all share a machine, so it is never done by itself.
void change_speeds(native::NativeWorld& world, const std::vector<std::uint32_t>& speeds) {
  const auto ended = std::make_shared<std::atomic<int>>(0);
  bool begun = false;
  world.driver().run([&] { begun = world.core().parts().change(speeds, [ended](bool changed) { *ended = changed ? 1 : -1; }); });
  expect(begun, "a change begins");
  for (int round = 0; round < kRounds && *ended == 0; ++round) pass(1ms);
  expect(*ended == 1, "parts have changed");
}

bool says(const Group& group, const std::string& text) { return group.describe_placement().find(text) != std::string::npos; }

void await_placement(const Group& group, const std::string& text) {
  for (int round = 0; round < kRounds && !says(group, text); ++round) pass(1ms);
  expect(says(group, text), [&] { return "\"" + text + "\" in \"" + group.describe_placement() + "\""; });
}

void check_all_sums(Group& group) {
  const int all = group.size() * (group.size() + 1) / 2;
  for (const std::size_t count : {1u, 3000u, 300'000u}) {
    std::vector<float> values(count, static_cast<float>(group.rank() + 1));
    group.all_sum(values);
    expect(values == std::vector<float>(count, static_cast<float>(all)), "a sum");
  }
}

std::string slow(int rank) {
  return "large all-reduces by hub; rank " + std::to_string(rank) + " has 0.20 of the others' speed and owns no part";
}

}  // namespace

TEST_CASE("speeds go on with the ranks that are left, in all groups, and with a rank that joins they are measured anew") {
  std::latch all_have_summed(4);
  Doors doors(3);
  Process joiner([&] {
    Group group = init(joiner_options(doors.of(0)));
    expect(group.size() == 4 && says(group, "4 native ranks: large all-reduces by ring"), "equal links");
    check_all_sums(group);
    group.barrier();
  });
  run_worlds(
      4,
      [&](const std::weak_ptr<native::NativeWorld>& owner, Group& world) {
        const int origin = world.rank();
        Group reversed = world.split(0, 3 - origin).value();
        expect(says(world, "4 native ranks: large all-reduces by ring") && world.algorithm("all_reduce", 1 << 24) == "ring", "equal parts");
        world.barrier();
        if (origin == 0) change_speeds(*owner.lock(), {1024, 1024, 205, 1024});
        await_placement(world, slow(2));
        await_placement(reversed, slow(1));
        expect(world.algorithm("all_reduce", 1 << 24) == "hub" && reversed.algorithm("all_reduce", 1 << 24) == "hub", "how large sums go");
        expect(says(world.split(0).value(), slow(2)), "a group that is formed now");
        check_all_sums(world);
        check_all_sums(reversed);
        all_have_summed.arrive_and_wait();
        if (origin == 1) return;
        use_up(world);
        Group left = world.reform().world;
        await_placement(left, slow(1));
        expect(says(left.split(0, 2 - left.rank()).value(), slow(1)), "its groups");
        check_all_sums(left);
        doors.open(left);
        Group grown = grow_to(left, 4).world;
        expect(says(grown, "4 native ranks: large all-reduces by ring") && grown.algorithm("all_reduce", 1 << 24) == "ring",
               "measured anew");
        check_all_sums(grown);
        grown.barrier();
      },
      follows_links);
  joiner.join();
}
