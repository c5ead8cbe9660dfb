#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/seeds.hpp"
#include "tests/local/peer_memory_network.hpp"
#include "transport/local/memory_shortcut.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// A shortcut that takes all simulated machines for one.
class EverywhereShortcut final : public local::MemoryShortcut {
 public:
  using MemoryShortcut::MemoryShortcut;
  bool offers(const Link&) const override { return true; }
};

/// Ranks whose links all read each other's memory, unless a read fails.
struct PeerMemoryGroup {
  FaultyMemory memory;
  std::vector<std::unique_ptr<Shortcut>> shortcuts;
  SimGroup group;

  explicit PeerMemoryGroup(const GroupSetup& setup) : group(setup) {
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto random = [this, rank](Bytes out) { group.authenticator(rank).fill_random(out); };
      shortcuts.push_back(std::make_unique<EverywhereShortcut>(group.node(rank).loop(), &memory, random));
      group.meeting_options(rank).shortcut = shortcuts.back().get();
      group.incoming(rank).set_shortcut(shortcuts.back().get());
    }
    group.meet();
  }
};

GroupSetup setup_of(std::uint64_t seed, SimRandom& random) {
  GroupSetup setup;
  setup.size = static_cast<int>(2 + random.below(4));
  setup.seed = seed;
  setup.world.segment_bytes = 40'000 + random.below(100'000);
  setup.world.limits = {.exchange_bytes = 0, .direct_bytes = random.chance(500) ? 0U : 1U << 30};
  if (random.chance(500)) setup.paths = rough_paths();
  return setup;
}

}  // namespace

TEST_CASE("ranks that read each other's memory add right, and part in order") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    SimRandom random(seed + 9);
    PeerMemoryGroup ranks(setup_of(seed, random));
    SimGroup& group = ranks.group;
    if (seed % 3 == 0) ranks.memory.fail_per_mille = 30;
    std::deque<Adder> adders;
    for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, 100'000 + seed * 997, 3);
    REQUIRE(group.sim().run_until([&] { return std::all_of(adders.begin(), adders.end(), [](const auto& a) { return a.done(); }); }) ==
            RunEnd::done);
    for (const Adder& adder : adders) CHECK(adder.last().text() == "");
    CHECK(ranks.memory.reads > 0);
    for (int rank = 0; rank < group.size(); ++rank) CHECK(group.world(rank).group().links() == "memory");
    group.close_cleanly();
  }
}

TEST_CASE("when a rank whose memory others read goes, every survivor's operation ends with its name") {
  for (const auto seed : seeds(60)) {
    CAPTURE(seed);
    SimRandom random(seed + 5);
    PeerMemoryGroup ranks(setup_of(seed, random));
    SimGroup& group = ranks.group;
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(group.size())));
    const auto kind = random.chance(500) ? StopKind::closes_links : StopKind::resets_links;
    std::deque<Adder> adders;
    for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, 100'000, 1000);
    group.sim().stop(group.node(victim), kind).in(Duration::microseconds(static_cast<std::int64_t>(random.below(30'000))));
    // The victim's memory can still be read after its end, while the memory of a process goes with it.
    ranks.memory.fail_per_mille = seed % 2 == 0 ? 0 : 5;
    const auto survivors_done = [&] {
      for (int rank = 0; rank < group.size(); ++rank)
        if (rank != victim && !adders[static_cast<std::size_t>(rank)].done()) return false;
      return true;
    };
    REQUIRE(group.sim().run_until(survivors_done, {.time = Duration::seconds(60)}) == RunEnd::done);
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank == victim) continue;
      const Status& status = adders[static_cast<std::size_t>(rank)].last();
      CAPTURE(rank, victim, status.text());
      CHECK(status.code() == Errc::peer_lost);
      CHECK(status.rank() == victim);
    }
  }
}

TEST_CASE("a rank that ends an operation early takes nothing back that others still read") {
  for (const auto seed : seeds(30)) {
    CAPTURE(seed);
    SimRandom random(seed + 6);
    PeerMemoryGroup ranks(setup_of(seed, random));
    SimGroup& group = ranks.group;
    std::deque<Adder> adders;
    for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, 100'000, 1000);
    const int quitter = static_cast<int>(random.below(static_cast<std::uint64_t>(group.size())));
    group.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(30'000))));
    group.world(quitter).fail({Errc::mismatch, "had enough", quitter});
    REQUIRE(group.sim().run_until([&] { return std::all_of(adders.begin(), adders.end(), [](const auto& a) { return a.done(); }); },
                                  {.time = Duration::seconds(60)}) == RunEnd::done);
    for (const Adder& adder : adders) {
      CHECK(adder.last().code() == Errc::mismatch);
      CHECK(adder.last().rank() == quitter);
    }
  }
}
