// Tests of groups of some ranks while all ranks change their parts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>

#include "tests/core/adder.hpp"
#include "tests/core/parts_loop.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr int kFormingStream = 9;

/// The sizes of groups, by Membership::key.
using GroupSizes = std::map<std::uint64_t, std::size_t>;

/// One rank that forms groups by splits and by creations in turns, uses each on two streams, and leaves it, at its own pace.
class Former {
 public:
  Former(SimGroup& group, int rank, std::uint64_t seed, int rounds, PartsResults& results, GroupSizes& sizes)
      : group_(group), rank_(rank), seed_(seed), rounds_(rounds), results_(results), sizes_(sizes) {}
  Former(const Former&) = delete;

  bool done() const { return (round_ == rounds_ || !failure_.ok()) && forming_ == nullptr && all_done(loops_); }
  const Status& failure() const { return failure_; }
  /// How many of its groups had unequal parts when it left them.
  int followed() const { return followed_; }

  /// Goes on, if what it waits for has ended.
  void go_on() {
    if (forming_ != nullptr) {
      if (!forming_->done()) return;
      if (!forming_->status.ok()) failure_ = forming_->status;
      forming_ = nullptr;
      use();
    }
    if (!all_done(loops_)) return;
    for (const PartsLoop& loop : loops_)
      if (!loop.failure().ok()) failure_ = loop.failure();
    if (!failure_.ok()) return;
    leave();
    if (round_ < rounds_) form();
  }

 private:
  int color(int rank) const { return static_cast<int>(SimRandom(seed_ * 1000 + static_cast<std::uint64_t>(round_ * 50 + rank)).below(2)); }
  void form() {
    GroupEngine& world = group_.world(rank_).group();
    if (round_ % 2 == 0) {
      forming_ = &group_.start_split(world, rank_, kFormingStream, color(rank_), -1, made_);
    } else {
      std::vector<int> ranks;
      for (int rank = group_.size() - 1; rank >= 0; --rank)
        if (color(rank) == color(rank_)) ranks.push_back(rank);
      forming_ = &group_.start_create(world, rank_, ranks, color(rank_), made_);
    }
    ++round_;
  }
  void use() {
    if (made_ == nullptr) return;
    sizes_[made_->members().key()] = static_cast<std::size_t>(made_->options().size);
    for (std::uint16_t stream = 0; stream < 2; ++stream) loops_.emplace_back(*made_, stream, 5, results_);
  }
  void leave() {
    loops_.clear();
    if (made_ == nullptr) return;
    followed_ += made_->topology_of_last_change().has_speeds() ? 1 : 0;
    group_.world(rank_).leave(*std::exchange(made_, nullptr));
  }

  SimGroup& group_;
  const int rank_;
  const std::uint64_t seed_;
  const int rounds_;
  PartsResults& results_;
  GroupSizes& sizes_;
  std::deque<PartsLoop> loops_;
  Outcome* forming_ = nullptr;
  GroupEngine* made_ = nullptr;
  int round_ = 0, followed_ = 0;
  Status failure_;
};

/// All ranks use the group of all ranks, and form others, while rank 0 changes their parts again and again.
struct Traffic {
  Traffic(const GroupSetup& setup, int rounds) : random(setup.seed), group(setup) {
    group.meet();
    sizes[0] = static_cast<std::size_t>(group.size());
    for (int rank = 0; rank < group.size(); ++rank) {
      for (std::uint16_t stream = 0; stream < 2; ++stream) loops.emplace_back(group.world(rank).group(), stream, rounds * 3, results);
      formers.push_back(std::make_unique<Former>(group, rank, setup.seed, rounds, results, sizes));
    }
  }
  /// `ends` says of a rank whether it has to end.
  template <class Ends>
  void run(Ends ends) {
    const int natives = group.options(0).natives(), guests = group.options(0).guests;
    const auto is_done = [&] {
      for (int rank = 0; rank < group.size(); ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        if (ends(rank) && !(loops[2 * at].done() && loops[2 * at + 1].done() && formers[at]->done())) return false;
      }
      return true;
    };
    for (int turn = 0; !is_done(); ++turn) {
      if (turn == 1'000'000) FAIL("ranks do not end");
      group.sim().run_for(Duration::microseconds(static_cast<std::int64_t>(random.below(3000))));
      for (int rank = 0; rank < group.size(); ++rank)
        if (ends(rank) && random.below(3) == 0) formers[static_cast<std::size_t>(rank)]->go_on();
      if (ends(0) && random.below(8) == 0)
        group.world(0).parts().change(random_speeds(random, natives, guests), [this](bool changed) { changes += changed ? 1 : 0; });
    }
  }
  void check_results(bool all_have_ended) const {
    for (const auto& [operation, hashes] : results) {
      CAPTURE(std::get<0>(operation), std::get<1>(operation), std::get<2>(operation));
      CHECK(hashes == std::vector<std::uint64_t>(hashes.size(), hashes[0]));
      if (all_have_ended) CHECK(hashes.size() == sizes.at(std::get<0>(operation)));
    }
  }

  SimRandom random;
  SimGroup group;
  PartsResults results;
  GroupSizes sizes;
  std::deque<PartsLoop> loops;
  std::vector<std::unique_ptr<Former>> formers;
  int changes = 0;
};

PartsSpeeds speeds_in(const GroupEngine& engine) {
  PartsSpeeds speeds;
  for (int rank = 0; rank < engine.options().size; ++rank) speeds.push_back(engine.topology_of_last_change().speed(rank));
  return speeds;
}

}  // namespace

TEST_CASE("parts of all groups change between the same two operations on their members, also of groups that are formed meanwhile") {
  int changes = 0, followed = 0;
  const auto all = seeds(16);
  for (const auto seed : all) {
    SimRandom random(seed);
    const int natives = static_cast<int>(3 + random.below(5)), guests = static_cast<int>(random.below(3));
    GroupSetup setup = parts_setup(natives, guests, seed);
    if (seed % 2 == 0) setup.paths = rough_paths();
    CAPTURE(seed, natives, guests);
    Traffic traffic(setup, 4);
    traffic.run([](int) { return true; });
    SimGroup& group = traffic.group;
    for (const PartsLoop& loop : traffic.loops) REQUIRE(loop.failure().ok());
    for (const auto& former : traffic.formers) {
      REQUIRE(former->failure().ok());
      followed += former->followed();
    }
    traffic.check_results(true);
    changes += traffic.changes;
    group.sim().run_for(Duration::seconds(1));
    const PartsSpeeds in_use = group.world(0).parts().in_use();
    std::vector<int> colors;
    for (int rank = 0; rank < group.size(); ++rank) colors.push_back(static_cast<int>(random.below(2)));
    for (const GroupEngine* engine : group.split(group.groups(), colors)) {
      PartsSpeeds of_members;
      int guests_among_them = 0;
      for (const int rank : world_ranks(*engine)) {
        of_members.push_back(in_use[static_cast<std::size_t>(rank)]);
        guests_among_them += group.options(0).is_guest(rank) ? 1 : 0;
      }
      CHECK(speeds_in(*engine) == taken(of_members, guests_among_them));
    }
    group.close_cleanly();
  }
  // Not each seed has some.
  if (all.size() < 16) return;
  CHECK(changes > 0);
  CHECK(followed > 0);
}

TEST_CASE(
    "where a rank goes in the midst of changes, all operations of all groups end, and what has ended well is the same on all members") {
  int changes = 0;
  const auto all = seeds(20);
  for (const auto seed : all) {
    SimRandom random(seed + 17);
    const int natives = static_cast<int>(3 + random.below(4));
    GroupSetup setup = parts_setup(natives, 0, seed);
    setup.world.heartbeat_timeout = Duration::seconds(2);
    if (seed % 2 == 0) setup.paths = rough_paths();
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(natives)));
    const auto fault = static_cast<Fault>(random.below(static_cast<std::uint64_t>(Fault::kCount)));
    CAPTURE(seed, natives, victim, static_cast<int>(fault));
    Traffic traffic(setup, 1000);
    inject(traffic.group, fault, victim, Duration::microseconds(static_cast<std::int64_t>(random.below(60'000))));
    traffic.run([victim](int rank) { return rank != victim; });
    for (int rank = 0; rank < natives; ++rank) {
      if (rank == victim) continue;
      CAPTURE(rank);
      const Status& failure = traffic.group.world(rank).failure();
      INFO(failure.text());
      CHECK(failure.code() == Errc::peer_lost);
      CHECK(failure.rank() == victim);
    }
    traffic.check_results(false);
    changes += traffic.changes;
  }
  if (all.size() == 20) CHECK(changes > 0);
}

TEST_CASE("no two groups of a world have one key, also where a number is given again, and all members know it") {
  SimGroup group(parts_setup(3, 0, 1));
  group.meet();
  std::vector<std::uint64_t> keys{group.world(0).group().members().key()};
  CHECK(keys[0] == 0);
  std::uint32_t id = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<GroupEngine*> made(3);
    if (round % 2 == 0) {
      made = group.split(group.groups(), {0, 0, 0});
    } else {
      for (int rank = 0; rank < 3; ++rank)
        group.start_create(group.world(rank).group(), rank, {0, 1, 2}, 0, made[static_cast<std::size_t>(rank)]);
      REQUIRE(group.run_until_done());
    }
    const std::uint64_t key = made[0]->members().key();
    for (int rank = 0; rank < 3; ++rank) {
      REQUIRE(made[static_cast<std::size_t>(rank)] != nullptr);
      CHECK(made[static_cast<std::size_t>(rank)]->members().key() == key);
    }
    if (round > 0) CHECK(made[0]->id() == id);
    id = made[0]->id();
    CHECK(std::find(keys.begin(), keys.end(), key) == keys.end());
    keys.push_back(key);
    for (int rank = 0; rank < 3; ++rank) group.world(rank).leave(*made[static_cast<std::size_t>(rank)]);
    group.sim().run_for(Duration::milliseconds(100));
  }
  group.close_cleanly();
}

TEST_CASE("a rank that has left a group still tells of its operations, so that others end those with the same parts") {
  // By hub the owners of a broadcast's parts pass them on, and the root, which has sent them, may leave.
  GroupSetup setup = parts_setup(4, 1, 1);
  setup.world.placement.policy = PlacementPolicy::hub;
  SimGroup group(setup);
  group.meet();
  constexpr int kRoot = 2;
  const bool leaves_world_group = GENERATE(false, true);
  auto made = leaves_world_group ? group.groups() : group.split(group.groups(), {0, 0, 0, 0, 0});
  std::vector<std::vector<std::int32_t>> values(5, std::vector<std::int32_t>(3000));
  for (std::size_t i = 0; i < 3000; ++i) values[kRoot][i] = static_cast<std::int32_t>(i);
  const auto start = [&](int rank) {
    const TensorView view(values[static_cast<std::size_t>(rank)]);
    GroupEngine& engine = *made[static_cast<std::size_t>(rank)];
    group.start_in(engine, rank, 0, make_broadcast(view, kRoot, engine.options()));
  };
  start(kRoot);
  REQUIRE(group.run_until_done());
  group.world(kRoot).leave(*made[kRoot]);
  const auto change = [&](const PartsSpeeds& speeds) {
    std::optional<bool> changed;
    CHECK(group.world(0).parts().change(speeds, [&](bool is) { changed = is; }));
    group.sim().run_for(Duration::milliseconds(100));
    CHECK(changed == true);
    for (int rank = 0; rank < 5; ++rank) CHECK(group.world(rank).parts().in_use() == speeds);
  };
  change({1024, 256, 1024, 1024, 1024});
  for (const int rank : {0, 1, 3, 4}) start(rank);
  REQUIRE(group.run_until_done());
  for (const auto& of_rank : values) CHECK(of_rank == values[kRoot]);
  // Once all have left, nobody tells of it.
  for (const int rank : {0, 1, 3, 4}) group.world(rank).leave(*made[static_cast<std::size_t>(rank)]);
  group.sim().run_for(Duration::milliseconds(100));
  change({1024, 1024, 1024, 512, 1024});
  group.close_cleanly();
}
