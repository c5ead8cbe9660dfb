// Tests of parts that follow what links carry while the ranks train.
#include "core/engine/parts_watch.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>

#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/epoch_crew.hpp"
#include "tests/core/probes_setup.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

using Speeds = std::vector<std::uint32_t>;

constexpr std::uint64_t kPort = 12'500'000;
constexpr int kForever = 1 << 30;
// A twentieth of the default times, for buffers and links that are as much smaller.
constexpr PartsWatchOptions kQuick{Duration::milliseconds(2), Duration::milliseconds(250), 32 << 10, Duration::milliseconds(5)};

GroupSetup watched_setup(int natives, int guests) {
  GroupSetup setup = probes_setup(natives, guests);
  setup.world.placement.parts = PartsPolicy::measured;
  setup.world.limits = {1000, 40'000};
  setup.world.segment_bytes = 16 << 10;
  return setup;
}

/// Ranks that add all the time, and watch what their links carry.
class Training {
 public:
  Training(const GroupSetup& setup, std::size_t count, const PartsWatchOptions& options = kQuick) : group(setup) {
    for (int rank = 0; rank < group.size(); ++rank) group.sim().limit_port(group.node(rank), kPort);
    group.meet();
    for (int rank = 0; rank < group.options(0).natives(); ++rank)
      watches.emplace_back(group.node(rank).loop(), group.world(rank), [this](const std::string& text) { told.push_back(text); }, options);
    for (int rank = 0; rank < group.size(); ++rank) adders.emplace_back(group, rank, count, kForever);
  }
  ~Training() {
    group.world(0).fail({Errc::cancelled, "the test is over"});
    group.sim().run_for(Duration::seconds(1));
  }
  /// Returns after how many windows it was told that parts have changed; `most` if it was not.
  int windows_until_told(int most) {
    const std::size_t before = told.size();
    for (int window = 1; window <= most; ++window) {
      group.sim().run_for(kQuick.window);
      if (told.size() > before) return window;
    }
    return most;
  }
  /// What all ranks use, who have to agree once what is under way has come.
  Speeds in_use() {
    const auto agree = [this] {
      for (int rank = 1; rank < group.size(); ++rank)
        if (group.world(rank).parts().in_use() != group.world(0).parts().in_use()) return false;
      return true;
    };
    for (int tries = 0; tries < 100 && !agree(); ++tries) group.sim().run_for(Duration::milliseconds(10));
    const Speeds speeds = group.world(0).parts().in_use();
    CHECK(agree());
    for (const Adder& adder : adders) CHECK(adder.last().ok());
    return speeds;
  }
  int rounds() const { return adders.front().completions(); }
  double rounds_in(Duration time) {
    const int before = rounds();
    group.sim().run_for(time);
    return rounds() - before;
  }

  SimGroup group;
  std::vector<std::string> told;
  std::deque<PartsWatch> watches;
  std::deque<Adder> adders;
};

}  // namespace

TEST_CASE("a rank whose links turn slow while the ranks train loses its part, and gets it back when they are fast again") {
  struct Case {
    std::size_t count;
    int natives, slow, guests;
  };
  Cases cases;
  // By direct sums, and along a ring, whose bytes cost the simulation most of its time.
  for (const auto& [count, natives, slow, guests] :
       {Case{9'000, 3, 0, 0}, Case{9'000, 3, 0, 1}, Case{9'000, 3, 2, 0}, Case{9'000, 3, 2, 1}, Case{9'000, 4, 0, 0}, Case{9'000, 4, 3, 0},
        Case{9'000, 6, 0, 0}, Case{9'000, 6, 5, 0}, Case{100'000, 3, 2, 1}, Case{100'000, 4, 0, 0}, Case{100'000, 6, 5, 0}}) {
    if (!cases.has_next()) continue;
    CAPTURE(count, natives, slow, guests);
    Training training(watched_setup(natives, guests), count);
    const Speeds equal(static_cast<std::size_t>(natives + guests), kFullSpeed);
    CHECK(training.windows_until_told(8) == 8);
    CHECK(training.in_use() == equal);
    training.group.sim().limit_port(training.group.node(slow), kPort / 8);
    CHECK(training.windows_until_told(12) < 12);
    const Speeds slower = training.in_use();
    for (int rank = 0; rank < natives + guests; ++rank) {
      const std::uint32_t speed = slower[static_cast<std::size_t>(rank)];
      CAPTURE(rank, speed);
      if (rank == slow)
        CHECK(speed < kFullSpeed / 2);
      else
        CHECK(speed == kFullSpeed);
    }
    REQUIRE(training.told.size() >= 1);
    CHECK_THAT(training.told.back(), Contains("rank " + std::to_string(slow) + "'s links carry ") && Contains(" Mbit/s, which were ") &&
                                         Contains("it owns no part of an all-reduce now"));
    CHECK_THAT(training.group.world(0).state().parts,
               Contains("rank " + std::to_string(slow) + " has 0.") && Contains("the last change: " + training.told.back()));
    training.group.sim().limit_port(training.group.node(slow), kPort);
    while (training.in_use() != equal && training.windows_until_told(12) < 12) continue;
    CHECK(training.in_use() == equal);
    CHECK(training.windows_until_told(8) == 8);
    CHECK(training.told.size() <= 4);
    CHECK_THAT(training.told.back(), Contains("it owns a full part of an all-reduce now"));
    CHECK_THAT(training.group.world(0).state().parts, Contains("all ranks own equal parts; the last change: rank "));
  }
}

TEST_CASE("a training with one rank that has turned slow is faster once parts have followed") {
  GroupSetup setup = watched_setup(4, 0);
  const bool is_passive = GENERATE(false, true);
  if (is_passive) setup.world.placement.parts = PartsPolicy::passive;
  Training training(setup, 100'000);
  training.group.sim().limit_port(training.group.node(2), kPort / 4);
  training.group.sim().run_for(Duration::milliseconds(200));
  const double before = training.rounds_in(Duration::milliseconds(500));
  CHECK(training.windows_until_told(12) < 12);
  const auto excepts_rings = [](const std::string& text) { return text.find("; along a ring parts stay equal") != std::string::npos; };
  CHECK(excepts_rings(training.told.back()) == is_passive);
  CHECK(excepts_rings(training.group.world(0).state().parts) == is_passive);
  training.group.sim().run_for(Duration::milliseconds(200));
  const double after = training.rounds_in(Duration::milliseconds(2000)) / 4;
  CAPTURE(before, after);
  CHECK(after / before > 1.3);
}

TEST_CASE("ranks that move little, and equal ranks over rough networks, keep their parts") {
  SECTION("little") {
    PartsWatchOptions options = kQuick;
    options.stretch_bytes = 1 << 30;
    Training training(watched_setup(4, 0), 20'000, options);
    training.group.sim().limit_port(training.group.node(1), kPort / 8);
    CHECK(training.windows_until_told(8) == 8);
    CHECK(training.in_use() == Speeds(4, kFullSpeed));
  }
  SECTION("rough networks") {
    for (const auto seed : seeds(12)) {
      CAPTURE(seed);
      GroupSetup setup = watched_setup(static_cast<int>(3 + seed % 4), static_cast<int>(seed % 2));
      setup.seed = seed;
      setup.paths.split_per_mille = {0, 100};
      setup.paths.jitter = Duration::microseconds(200);
      if (seed % 3 != 0) setup.world.placement.parts = PartsPolicy::passive;
      Training training(setup, 20'000);
      CHECK(training.windows_until_told(12) == 12);
      CHECK(training.in_use() == Speeds(static_cast<std::size_t>(training.group.size()), kFullSpeed));
    }
  }
}

TEST_CASE("where links turn slow and fast all the time, sums come out right, and all ranks agree") {
  for (const auto seed : seeds(10)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const int natives = static_cast<int>(3 + random.below(4)), guests = static_cast<int>(random.below(2));
    GroupSetup setup = watched_setup(natives, guests);
    setup.seed = seed;
    Training training(setup, 9'000);
    const Instant began = training.group.sim().now();
    for (int change = 0; change < 12; ++change) {
      const int rank = static_cast<int>(random.below(static_cast<std::uint64_t>(natives)));
      training.group.sim().limit_port(training.group.node(rank), kPort / (1 + random.below(10)));
      training.group.sim().run_for(Duration::milliseconds(static_cast<std::int64_t>(random.below(2500))));
      training.in_use();
    }
    CHECK(training.rounds() > 100);
    const auto windows = (training.group.sim().now() - began).nanoseconds / kQuick.window.nanoseconds;
    CHECK(training.told.size() <= static_cast<std::size_t>(windows / SpeedRecord::kInARow + 1));
  }
}

TEST_CASE("the speeds of a training outlive the loss of ranks, whichever is lost, also in the midst of a change") {
  constexpr int kSize = 5, kSlow = 2;
  for (const auto seed : seeds(40)) {
    SimRandom random(seed);
    int victim = static_cast<int>(random.below(kSize - 1));
    if (victim >= kSlow) ++victim;
    const bool amidst = seed % 2 == 0;
    CAPTURE(seed, victim, amidst);
    GroupSetup setup = probes_setup(kSize, 0);
    setup.seed = seed;
    setup.world.placement.parts = PartsPolicy::measured;
    Crew crew(setup, OnSplit::wait);
    std::deque<PartsWatch> watches;
    const auto watch = [&](int rank) {
      watches.emplace_back(crew.group.node(rank).loop(), crew.survivor(rank).epochs().world(), nullptr, kQuick);
    };
    for (int rank = 0; rank < kSize; ++rank) watch(rank);
    crew.run_for(Duration::milliseconds(20));
    Speeds speeds(kSize, kFullSpeed);
    speeds[kSlow] = 200;
    std::optional<bool> changed;
    crew.survivor(0).world().parts().change(speeds, [&](bool is) { changed = is; });
    if (!amidst) crew.run_for(Duration::milliseconds(20));
    CHECK(changed.has_value() != amidst);
    crew.end(victim, ending(random), Duration::microseconds(static_cast<std::int64_t>(amidst ? random.below(2000) : 0)));
    for (const int rank : crew.living())
      for (int tries = 0; crew.survivor(rank).epochs().world().options().epoch == 0; ++tries) {
        REQUIRE(tries < 1000);
        crew.run_for(Duration::milliseconds(1));
      }
    for (const int rank : crew.living()) watch(rank);
    crew.run_for(Duration::milliseconds(200));
    crew.check_goes_on(crew.living());
    const Speeds kept = crew.survivor(crew.living().front()).world().parts().in_use();
    for (const int rank : crew.living()) CHECK(crew.survivor(rank).world().parts().in_use() == kept);
    const int slow_now = victim < kSlow ? kSlow - 1 : kSlow;
    CHECK(std::count(kept.begin(), kept.end(), kFullSpeed) >= kSize - 2);
    if (!amidst) CHECK(kept[static_cast<std::size_t>(slow_now)] == 200);
  }
}

namespace {

/// Ranks of which one has turned slow, as all know.
struct KnowingCrew : Crew {
  explicit KnowingCrew(int size, Duration heartbeat_timeout = Duration::seconds(2))
      : Crew(setup_of(size), OnSplit::wait, heartbeat_timeout) {
    Speeds speeds(static_cast<std::size_t>(size), kFullSpeed);
    speeds[2] = 200;
    survivor(0).world().parts().change(speeds, [](bool changed) { CHECK(changed); });
    run_for(Duration::milliseconds(20));
  }
  static GroupSetup setup_of(int size) {
    GroupSetup setup = probes_setup(size, 0);
    setup.world.placement.parts = PartsPolicy::measured;
    return setup;
  }
  /// The last rank goes, and the others begin the next epoch.
  void lose_last() {
    const auto present = [this](int rank) { return survivor(rank).epochs().world().options().epoch; };
    const std::uint32_t before = present(0);
    end(living().back(), StopKind::closes_links, {});
    for (const int rank : living())
      for (int tries = 0; present(rank) == before; ++tries) {
        REQUIRE(tries < 1000);
        run_for(Duration::milliseconds(1));
      }
  }
  void check_speeds(const Speeds& expected) {
    for (const int rank : living()) CHECK(survivor(rank).epochs().world().parts().in_use() == expected);
  }
};

}  // namespace

TEST_CASE("the speeds of the epoch before are taken over, although a rank answers late") {
  KnowingCrew crew(5);
  crew.lose_last();
  crew.group.sim().freeze(crew.group.node(1)).now();
  PartsWatch watch(crew.group.node(0).loop(), crew.survivor(0).epochs().world(), nullptr, kQuick);
  crew.run_for(Duration::milliseconds(1200));
  CHECK(crew.survivor(0).world().parts().in_use() == Speeds(4, kFullSpeed));
  crew.group.sim().resume(crew.group.node(1)).now();
  crew.run_for(Duration::milliseconds(600));
  crew.check_goes_on(crew.living());
  crew.check_speeds({1024, 1024, 200, 1024});
}

TEST_CASE("where a rank never answers in time, the speeds of the epoch before are tried more and more rarely") {
  // Longer than PartsSwitch::kLongestPatience.
  KnowingCrew crew(5, Duration::seconds(20));
  crew.lose_last();
  SimWorld& sim = crew.group.sim();
  SimNode& late = crew.group.node(1);
  const Instant began = sim.now();
  std::optional<PartsWatch> watch;
  int tries = 0;
  // It stands still whenever it may be asked: around the end of each window, of which some are a few milliseconds longer.
  for (std::int64_t window = 0; window < 60; ++window) {
    const Instant before_end = began + PartsWatchOptions{}.window * window + Duration::seconds(-1);
    if (before_end > sim.now()) crew.run_for(before_end - sim.now());
    sim.freeze(late).now();
    if (!watch) watch.emplace(crew.group.node(0).loop(), crew.survivor(0).epochs().world(), nullptr);
    bool was_open = false;
    for (int step = 0; step < 35 || was_open; ++step) {
      crew.run_for(Duration::milliseconds(100));
      const bool is_open = crew.survivor(0).world().parts().is_open();
      tries += is_open && !was_open ? 1 : 0;
      was_open = is_open;
    }
    sim.resume(late).now();
    crew.run_for(Duration::milliseconds(200));
  }
  // In five minutes: at once, then after 1, 2, 4, 8, 16 and 32 windows.
  CHECK(tries >= 4);
  CHECK(tries <= 7);
  CHECK(crew.survivor(0).world().failure().ok());
  crew.check_speeds(Speeds(4, kFullSpeed));
}

TEST_CASE("speeds outlive two losses, of which the second comes before they were taken over") {
  KnowingCrew crew(6);
  crew.lose_last();
  crew.lose_last();
  crew.check_speeds(Speeds(4, kFullSpeed));
  PartsWatch watch(crew.group.node(0).loop(), crew.survivor(0).epochs().world(), nullptr, kQuick);
  crew.run_for(Duration::milliseconds(100));
  crew.check_goes_on(crew.living());
  crew.check_speeds({1024, 1024, 200, 1024});
}
