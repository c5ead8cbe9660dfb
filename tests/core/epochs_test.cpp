#include "core/elastic/epochs.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "sim/sim_random.hpp"
#include "tests/core/adder.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Origins = std::vector<int>;  // members by their ranks in the first epoch

/// What a rank has learned: the members of each epoch of each lineage.
using Records = std::map<std::pair<std::uint64_t, std::uint32_t>, Origins>;

constexpr std::int32_t kEpochs = 10'000;

/// Sums of all sizes, so that all algorithms take part.
void fill(std::vector<std::int32_t>& values, std::int32_t mark, int origin) {
  values.resize(SimRandom(static_cast<std::uint64_t>(mark)).below(3000));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1 << origin : mark;
}

void check_sum(const std::vector<std::int32_t>& values, std::int32_t mark, const Origins& members, int origin) {
  std::int32_t all = 0;
  for (const int member : members) all |= 1 << member;
  const std::int32_t marks = mark * static_cast<std::int32_t>(members.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != (i % 2 == 0 ? all : marks)) FAIL("rank " << origin << " has " << values[i] << " at " << i);
}

/// Without pauses there would be too many sums in the seconds for which some tests run.
Duration pause_after(int done) { return done < 30 ? Duration::microseconds(done * 7) : Duration::milliseconds(50); }

/// A guest, which adds until its world ends.
class Visitor {
 public:
  Visitor(SimGroup& group, int rank) : loop_(group.node(rank).loop()), origin_(rank), world_(group.take_world(rank)) {
    for (int member = 0; member < group.size(); ++member) members_.push_back(member);
    add();
  }
  const std::optional<Status>& failure() const { return failure_; }

 private:
  void add() {
    fill(values_, done_, origin_);
    auto task = make_all_reduce(ReduceOp::sum, values_, values_, 1, world_->group().options());
    task.value().completion = [this](const Status& status) { on_done(status); };
    world_->group().start(0, std::move(task).value());
  }
  void on_done(const Status& status) {
    if (!status.ok()) {
      failure_ = status;
      values_ = {};
      return loop_.defer(guard_.wrap([this] { world_->close([] {}); }));
    }
    check_sum(values_, done_, members_, origin_);
    ++done_;
    loop_.after(pause_after(done_), guard_.wrap([this] { add(); }));
  }

  EventLoop& loop_;
  const int origin_;
  std::unique_ptr<World> world_;
  Origins members_;
  std::vector<std::int32_t> values_;
  std::optional<Status> failure_;
  std::int32_t done_ = 0;
  AliveGuard guard_;
};

/// A rank that adds in every epoch, again and again, and goes on in the next one.
class Survivor {
 public:
  Survivor(SimGroup& group, int rank, EpochsOptions options)
      : loop_(group.node(rank).loop()), origin_(rank), epochs_(loop_, group.take_world(rank), std::move(options)) {
    for (int member = 0; member < group.size(); ++member) members_.push_back(member);
    world_ = &epochs_.world();
    add();
  }

  World& world() { return *world_; }
  Epochs& epochs() { return epochs_; }
  const Origins& members() const { return members_; }
  const Records& records() const { return records_; }
  std::uint64_t lineage() const { return lineage_; }
  bool left_out() const { return left_out_; }
  /// How many sums this epoch has done.
  int done() const { return done_; }
  const std::vector<Status>& failures() const { return failures_; }
  int pending() const { return pending_; }

 private:
  std::int32_t mark() const { return static_cast<std::int32_t>(world_->options().epoch) * kEpochs + done_; }

  void add() {
    fill(values_, mark(), origin_);
    auto task = make_all_reduce(ReduceOp::sum, values_, values_, 1, world_->group().options());
    task.value().timeout = Duration::seconds(100);
    task.value().completion = [this](const Status& status) { on_done(status); };
    ++pending_;
    world_->group().start(0, std::move(task).value());
  }

  void on_done(const Status& status) {
    --pending_;
    if (!status.ok()) {
      failures_.push_back(status);
      values_ = {};  // nothing may write there any more
      return epochs_.when_succeeded(*world_, [this](const Succession& succession) { go_on(succession); });
    }
    check_sum(values_, mark(), members_, origin_);
    ++done_;
    loop_.after(pause_after(done_), guard_.wrap([this] { add(); }));
  }

  void go_on(const Succession& succession) {
    Origins next;
    for (const int rank : succession.members) next.push_back(members_[static_cast<std::size_t>(rank)]);
    const std::uint32_t epoch = world_->options().epoch + 1;
    CHECK(records_.try_emplace({succession.lineage, epoch}, next).second);
    left_out_ = succession.world == nullptr;
    CHECK(left_out_ == (std::find(next.begin(), next.end(), origin_) == next.end()));
    if (left_out_) return;
    World& before = *world_;
    world_ = succession.world;
    CHECK(world_->options().epoch == epoch);
    CHECK(world_->options().size == static_cast<int>(next.size()));
    members_ = next;
    lineage_ = succession.lineage;
    done_ = 0;
    // A program may hold a group for long after its epoch.
    held_.push_back(&before);
    if (held_.size() > 2) {
      held_.front()->leave(held_.front()->group());
      held_.pop_front();
    }
    add();
  }

  EventLoop& loop_;
  const int origin_;
  Records records_;
  Epochs epochs_;
  World* world_ = nullptr;
  std::deque<World*> held_;
  Origins members_;
  std::uint64_t lineage_ = 0;
  std::vector<std::int32_t> values_;
  std::vector<Status> failures_;
  int done_ = 0, pending_ = 0;
  bool left_out_ = false;
  AliveGuard guard_;
};

/// All ranks of a group whose processes and links break.
class Crew {
 public:
  Crew(const GroupSetup& setup, OnSplit on_split) : group(elastic(setup)) {
    group.meet();
    natives = group.size() - setup.world.guests;
    for (int rank = 0; rank < natives; ++rank) {
      EpochsOptions options;
      options.on_split = on_split;
      options.look_for_proof = [this, rank](int other, std::function<void(bool)> done) {
        // A machine without power does not refuse a connection.
        group.node(rank).loop().after(Duration::milliseconds(1), [this, other, done = std::move(done)] { done(has_refused(other)); });
      };
      survivors.emplace_back(group, rank, std::move(options));
    }
    for (int rank = natives; rank < group.size(); ++rank) visitors.emplace_back(group, rank);
  }

  static GroupSetup elastic(GroupSetup setup) {
    setup.world.elastic = true;
    setup.world.heartbeat_timeout = Duration::seconds(2);
    setup.world.limits = {2000, 4000};
    setup.world.segment_bytes = 1024;
    return setup;
  }

  bool has_refused(int rank) const { return ended.contains(rank); }
  void end(int rank, StopKind kind, Duration delay) {
    group.sim().stop(group.node(rank), kind).in(delay);
    gone.insert(rank);
    if (kind != StopKind::falls_silent) end_times[rank] = group.sim().now() + delay;
  }
  void run_for(Duration duration) {
    const Instant until = group.sim().now() + duration;
    while (group.sim().now() < until) {
      for (const auto& [rank, at] : end_times)
        if (group.sim().now() >= at) ended.insert(rank);
      group.sim().run_for(std::min(Duration::milliseconds(1), until - group.sim().now()));
    }
  }
  bool is_gone(int rank) const { return gone.contains(rank); }
  Survivor& survivor(int rank) { return survivors[static_cast<std::size_t>(rank)]; }
  /// The native ranks that are not gone.
  Origins living() const {
    Origins all;
    for (int rank = 0; rank < natives; ++rank)
      if (!is_gone(rank)) all.push_back(rank);
    return all;
  }
  /// Every one of them is in one world of just these ranks, and that world works.
  void check_goes_on(const Origins& members) {
    check_records();
    for (const int rank : members) {
      CAPTURE(rank);
      CHECK(survivor(rank).members() == members);
      CHECK(survivor(rank).world().failure().ok());
      CHECK(survivor(rank).done() > 0);
      for (const Status& failure : survivor(rank).failures()) CHECK(failure.code() == Errc::peer_lost);
    }
  }

  /// What only ranks knew that are gone binds nobody.
  void check_records() {
    Records all;
    for (const int rank : living())
      for (const auto& [epoch, members] : survivor(rank).records()) CHECK(all.try_emplace(epoch, members).first->second == members);
  }

  SimGroup group;
  int natives = 0;
  std::deque<Survivor> survivors;
  std::deque<Visitor> visitors;
  std::set<int> gone, ended;
  std::map<int, Instant> end_times;
};

StopKind ending(SimRandom& random) { return random.below(2) == 0 ? StopKind::closes_links : StopKind::resets_links; }

}  // namespace

TEST_CASE("when processes end, all the others go on together") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    SimRandom random(seed);
    GroupSetup setup;
    setup.size = static_cast<int>(2 + random.below(4));
    setup.seed = seed;
    setup.encrypts = seed % 3 == 0;
    if (random.below(2) != 0) setup.paths = rough_paths();
    Crew crew(setup, OnSplit::wait);
    const auto losses = 1 + random.below(static_cast<std::uint64_t>(setup.size - 1));
    for (std::uint64_t loss = 0; loss < losses; ++loss)
      crew.end(static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))), ending(random),
               Duration::microseconds(static_cast<std::int64_t>(random.below(random.below(2) != 0 ? 3'000 : 100'000))));
    CAPTURE(setup.size, crew.gone);
    crew.run_for(Duration::seconds(3));
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("the next epoch begins some round trips after a process has ended") {
  for (const int size : {2, 3, 5}) {
    GroupSetup setup;
    setup.size = size;
    setup.paths = PathOptions::calm();
    for (const int victim : {0, size - 1}) {
      CAPTURE(size, victim);
      Crew crew(setup, OnSplit::wait);
      crew.run_for(Duration::milliseconds(20));
      crew.end(victim, StopKind::closes_links, {});
      crew.run_for(Duration::milliseconds(5));
      for (const int rank : crew.living()) CHECK(crew.survivor(rank).epochs().world().options().epoch == 1);
      crew.run_for(Duration::milliseconds(200));
      crew.check_goes_on(crew.living());
    }
  }
}

TEST_CASE("a majority goes on without ranks that have fallen silent") {
  for (const auto seed : seeds(60)) {
    CAPTURE(seed);
    SimRandom random(seed + 1000);
    GroupSetup setup;
    setup.size = static_cast<int>(3 + random.below(4));
    setup.seed = seed;
    Crew crew(setup, OnSplit::wait);
    const auto losses = 1 + random.below(static_cast<std::uint64_t>((setup.size - 1) / 2));
    while (crew.gone.size() < losses)
      crew.end(static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))), StopKind::falls_silent,
               Duration::microseconds(static_cast<std::int64_t>(random.below(100'000))));
    CAPTURE(setup.size, crew.gone);
    crew.run_for(Duration::seconds(20));
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("of two ranks whose link is cut, each waits or goes on alone, as the policy says") {
  for (const OnSplit policy : {OnSplit::wait, OnSplit::fork}) {
    GroupSetup setup;
    setup.seed = 5;
    Crew crew(setup, policy);
    crew.group.sim().cut(crew.group.node(0), crew.group.node(1)).in(Duration::milliseconds(5));
    crew.run_for(Duration::seconds(30));
    for (const int rank : {0, 1}) {
      CAPTURE(rank);
      CHECK(crew.survivor(rank).failures().size() == 1);
      CHECK(crew.survivor(rank).members().size() == (policy == OnSplit::wait ? 2 : 1));
      CHECK(crew.survivor(rank).world().failure().ok() == (policy == OnSplit::fork));
    }
    if (policy == OnSplit::fork) CHECK(crew.survivor(0).lineage() != crew.survivor(1).lineage());
  }
}

TEST_CASE("a rank that stood still learns that the others went on without it") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 3;
    setup.seed = seed;
    Crew crew(setup, OnSplit::fork);
    const int still = static_cast<int>(seed % 3);
    crew.group.sim().freeze(crew.group.node(still)).in(Duration::milliseconds(20));
    crew.run_for(Duration::seconds(6));
    crew.gone.insert(still);
    crew.check_goes_on(crew.living());
    crew.group.sim().resume(crew.group.node(still)).now();
    crew.run_for(Duration::seconds(30));
    CHECK(crew.survivor(still).failures().size() == 1);
    CHECK(crew.survivor(still).left_out());
    crew.check_goes_on(crew.living());
  }
}

TEST_CASE("whatever breaks, no two ranks disagree about an epoch") {
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    SimRandom random(seed + 7777);
    GroupSetup setup;
    setup.size = static_cast<int>(2 + random.below(4));
    setup.seed = seed;
    setup.encrypts = seed % 3 == 0;
    if (random.below(2) != 0) setup.paths = rough_paths();
    Crew crew(setup, random.below(2) == 0 ? OnSplit::wait : OnSplit::fork);
    SimWorld& sim = crew.group.sim();
    const auto any = [&] { return static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size))); };
    const auto soon = [&] {
      return Duration::microseconds(static_cast<std::int64_t>(random.below(random.below(2) != 0 ? 50'000 : 6'000'000)));
    };
    for (auto faults = 1 + random.below(5); faults > 0; --faults) {
      const int one = any(), other = any();
      switch (random.below(5)) {
        case 0:
          if (crew.gone.size() + 1 < static_cast<std::size_t>(setup.size)) crew.end(one, ending(random), soon());
          break;
        case 1:
          sim.freeze(crew.group.node(one)).in(soon());
          sim.resume(crew.group.node(one)).in(Duration::seconds(7) + soon());
          break;
        case 2:
          if (one == other) break;
          sim.cut(crew.group.node(one), crew.group.node(other)).in(soon());
          if (random.below(2) != 0) sim.mend(crew.group.node(one), crew.group.node(other)).in(Duration::seconds(7) + soon());
          break;
        case 3:
          if (one != other) sim.reset(crew.group.node(one), crew.group.node(other)).in(soon());
          break;
        default:
          if (one != other) sim.stall(crew.group.node(one), crew.group.node(other), soon()).in(soon());
      }
    }
    crew.run_for(Duration::seconds(40));
    crew.check_records();
    // No operation hangs: where its world has failed it has ended.
    for (int rank = 0; rank < setup.size; ++rank) {
      CAPTURE(rank);
      if (!crew.is_gone(rank)) CHECK((crew.survivor(rank).pending() == 0 || crew.survivor(rank).world().failure().ok()));
    }
  }
}

TEST_CASE("whoever is lost, the native ranks go on without the guests, who learn it") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed + 4000);
    GroupSetup setup;
    setup.size = static_cast<int>(2 + random.below(4));
    setup.world.guests = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size - 1)));
    setup.seed = seed;
    setup.encrypts = seed % 3 == 0;
    if (random.below(2) != 0) setup.paths = rough_paths();
    Crew crew(setup, OnSplit::wait);
    const int victim = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
    // A guest may fall silent, too, but of two native ranks one goes on only where the other one's end is proved.
    const StopKind kind = victim >= crew.natives && random.below(3) == 0 ? StopKind::falls_silent : ending(random);
    crew.end(victim, kind, Duration::microseconds(static_cast<std::int64_t>(random.below(100'000))));
    CAPTURE(setup.size, setup.world.guests, victim);
    crew.run_for(Duration::seconds(kind == StopKind::falls_silent ? 8 : 4));
    crew.check_goes_on(crew.living());
    for (const int rank : crew.living()) CHECK(crew.survivor(rank).world().options().guests == 0);
    for (int guest = crew.natives; guest < setup.size; ++guest) {
      CAPTURE(guest);
      const auto& failure = crew.visitors[static_cast<std::size_t>(guest - crew.natives)].failure();
      if (crew.is_gone(guest)) continue;
      REQUIRE(failure.has_value());
      CHECK(failure->code() == Errc::peer_lost);
    }
  }
}

TEST_CASE("what a guest does wrong ends the epoch and nothing else") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    GroupSetup setup;
    setup.size = 3;
    setup.world.guests = 1;
    setup.seed = seed;
    SimGroup group(Crew::elastic(setup));
    group.meet();
    // The guest adds other numbers of elements than the others, or closes its world in the midst of an operation.
    std::vector<std::int32_t> mine(4, 1), theirs(seed % 2 == 0 ? 5 : 4, 1);
    Outcome& first = group.start(0, 0, make_all_reduce(ReduceOp::sum, mine, mine, 1, group.options(0)));
    Outcome& guest = group.start(2, 0, make_all_reduce(ReduceOp::sum, theirs, theirs, 1, group.options(2)));
    if (seed % 2 != 0) group.world(2).close([] {});
    REQUIRE(group.sim().run_until([&] { return first.done() && guest.done(); }) == RunEnd::done);
    CHECK(first.status.code() == Errc::peer_lost);
    CHECK(first.status.rank() == 2);
  }
}
