#include <catch2/catch.hpp>
#include <cstdio>

#include "sim/sim_random.hpp"
#include "tests/core/agreement_world.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// A set of hashes, several times as fast as the standard library's.
class SeenStates {
 public:
  /// Returns whether the hash is new.
  bool insert(std::uint64_t hash) {
    if (2 * ++count_ > slots_.size()) grow();
    std::uint64_t& slot = slot_of(hash | 1U);
    if (slot == 0) return slot = hash | 1U, true;
    --count_;
    return false;
  }
  std::size_t size() const { return count_; }

 private:
  std::uint64_t& slot_of(std::uint64_t hash) {
    std::size_t at = hash >> 20;
    while (slots_[at & (slots_.size() - 1)] != 0 && slots_[at & (slots_.size() - 1)] != hash) ++at;
    return slots_[at & (slots_.size() - 1)];
  }
  void grow() {
    const auto old = std::exchange(slots_, std::vector<std::uint64_t>(4 * slots_.size()));
    for (const std::uint64_t hash : old)
      if (hash != 0) slot_of(hash) = hash;
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1024);
  std::size_t count_ = 0;
};

/// Visits every state that a world can reach, depth first. It stops at the first state with which something is wrong.
class Exploration {
 public:
  /// `promptly`: in each quiet state everything must have been decided without a timer.
  explicit Exploration(bool promptly = false) : promptly_(promptly) {}

  /// Returns how a wrong state is reached and what is wrong with it, or "".
  std::string run(const AgreementWorld& world) {
    visit(world);
    return wrong_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  void visit(const AgreementWorld& world) {
    if (!seen_.insert(world.hash())) return;
    bool quiet = true;
    for (const Move& move : world.moves()) {
      quiet = quiet && move.fault;
      AgreementWorld next = world;
      wrong_ = next.make(move);
      if (wrong_.empty()) visit(next);
      if (wrong_.empty()) continue;
      wrong_ = text_of(move) + wrong_;
      return;
    }
    if (quiet) wrong_ = check_quiet(world);
  }

  std::string check_quiet(AgreementWorld world) const {
    std::string wrong = world.check_progress(false);
    if (!wrong.empty()) return wrong;
    world.prove_all();
    wrong = world.settle();
    return wrong.empty() ? world.check_progress(promptly_) : wrong;
  }

  static std::string text_of(const Move& move) {
    static const char* const kNames[] = {"start", "receive", "lose", "prove_dead", "stop_waiting", "take_over", "stand_alone"};
    if (move.kind == Move::Kind::crash) return "crash " + std::to_string(move.rank) + "; ";
    return std::string(kNames[static_cast<int>(move.event)]) + " " + std::to_string(move.rank) + " " + std::to_string(move.peer) + "; ";
  }

  SeenStates seen_;
  std::string wrong_;
  bool promptly_;
};

struct Shape {
  const char* name;
  int size = 1, guests = 0;
  Faults faults{};
  bool started = true;  // otherwise each rank starts at a moment of its own
  bool promptly = false;
  bool large = false;  // too many states for slow builds
};

std::string explore(const Shape& shape, BrokenRule broken = BrokenRule::none) {
  AgreementTable table;
  AgreementWorld world(table, shape.size, shape.guests, shape.faults, broken);
  if (shape.started) world.start_all();
  Exploration exploration(shape.promptly);
  std::string wrong = exploration.run(world);
  if (broken == BrokenRule::none) {
    std::printf("%-60s %9zu states\n", shape.name, exploration.states());
    std::fflush(stdout);
  }
  return wrong;
}

bool is_slow_build() { return share_of(100) < 100; }

Move event(Event kind, int rank, int peer = 0, bool fault = false) { return {Move::Kind::event, kind, rank, peer, fault}; }
Move crash(int rank) { return {Move::Kind::crash, Event::start, rank, 0, true}; }

/// Rank 0 has decided with ranks 1 and 2, while 3 and 4 were slow, and its messages to them are under way. Then 0, 1 and 2 die; 4 knows.
AgreementWorld majority_dies(AgreementTable& table, int guests, Faults faults, BrokenRule broken) {
  faults.crashes = 3;
  faults.impatience = 1;
  AgreementWorld world(table, 5 + guests, guests, faults, broken);
  world.start_all();
  std::vector<int> quick{1, 2};
  if (guests == 1) quick.push_back(5);
  for (const int peer : quick) REQUIRE(world.make(event(Event::receive, peer, 0)).empty());
  for (const int peer : quick) REQUIRE(world.make(event(Event::receive, 0, peer)).empty());
  REQUIRE(world.make(event(Event::stop_waiting, 0, 0, true)).empty());
  for (const int peer : quick) REQUIRE(world.make(event(Event::receive, peer, 0)).empty());
  for (const int peer : quick) REQUIRE(world.make(event(Event::receive, 0, peer)).empty());
  REQUIRE(world.at(0).outcome());
  if (guests == 1) REQUIRE(world.make(event(Event::receive, 5, 0)).empty());
  for (const int rank : {0, 1, 2}) REQUIRE(world.make(crash(rank)).empty());
  for (const int rank : {0, 1, 2}) REQUIRE(world.make(event(Event::prove_dead, 4, rank, true)).empty());
  return world;
}

std::string explore_after_majority_died(int guests, BrokenRule broken) {
  AgreementTable table;
  Exploration exploration;
  std::string wrong = exploration.run(majority_dies(table, guests, {0, guests, 1, 0, 0, true}, broken));
  if (broken == BrokenRule::none) std::printf("%-60s %9zu states\n", "a majority decides and dies", exploration.states());
  return wrong;
}

std::string run_random(std::uint64_t seed, BrokenRule broken = BrokenRule::none) {
  SimRandom random(seed);
  const auto below = [&](int bound) { return static_cast<int>(random.below(static_cast<std::uint64_t>(bound))); };
  const int voters = 2 + below(8);
  const int guests = std::min(below(3), AgreementWorld::kMaxRanks - voters);
  const Faults faults{below(voters + guests), below(4), below(5), below(3), below(8) == 0 ? 2 : 0, below(3) != 0};
  AgreementTable table;
  AgreementWorld world(table, voters + guests, guests, faults, broken);
  if (below(2) == 0) world.start_all();
  const int fault_percent = 1 + below(30);
  for (int count = 0; count < 600; ++count) {
    std::vector<Move> usual, faulty;
    for (const Move& move : world.moves()) (move.fault ? faulty : usual).push_back(move);
    const bool fault = usual.empty() || below(100) < fault_percent;
    const auto& moves = fault ? faulty : usual;
    if (moves.empty()) {
      if (usual.empty()) break;
      continue;
    }
    const std::string wrong = world.make(moves[random.below(moves.size())]);
    if (!wrong.empty()) return wrong;
  }
  std::string wrong = world.settle();
  if (wrong.empty()) wrong = world.check_progress(false);
  if (wrong.empty()) wrong = world.run_timers();
  if (!wrong.empty()) return wrong;
  world.prove_all();
  return world.run_timers();
}

}  // namespace

TEST_CASE("in small worlds every order of events leads to one outcome") {
  // The numbers are crashes, suspicions, take-overs, calls of stop_waiting_for_reports() and of stand_alone().
  const Shape shapes[] = {
      {"1 rank", 1, 0, {0, 0, 2, 1, 0, true}, false, true},
      {"2 ranks: any faults", 2, 0, {2, 1, 3, 2, 0, true}, false},
      {"2 ranks: forks", 2, 0, {1, 1, 2, 1, 2, true}, false},
      {"1 voter, 1 guest", 2, 1, {2, 1, 2, 1, 0, true}, false},
      {"3 ranks: crashes, no timer", 3, 0, {3, 0, 0, 0, 0, true}, false, true},
      {"3 ranks: crash, suspicion", 3, 0, {1, 1, 0, 1, 0, true}, false},
      {"3 ranks: crash, suspicion, take-over", 3, 0, {1, 1, 1, 0, 0, true}, false, false, true},
      {"3 ranks: crash, suspicion, take-over, impatience", 3, 0, {1, 1, 1, 1, 0, true}, true, false, true},
      {"3 ranks: crashes, take-overs", 3, 0, {2, 0, 2, 0, 0, true}, true, false, true},
      {"3 ranks: suspicions of all links, take-over", 3, 0, {0, 3, 1, 0, 0, true}, true, false, true},
      {"3 ranks: crash, suspicions, forks", 3, 0, {1, 2, 0, 0, 2, true}},
      {"2 voters, 1 guest: crash, suspicion, take-over", 3, 1, {1, 1, 1, 0, 0, true}},
      {"4 ranks: crash, no timer", 4, 0, {1, 0, 0, 0, 0, true}, true, true},
      {"4 ranks: crashes, no timer", 4, 0, {3, 0, 0, 0, 0, true}, true, true, true},
      {"4 ranks: crash, impatience", 4, 0, {1, 0, 0, 1, 0, true}, true, false, true},
      {"4 ranks: crash, suspicion", 4, 0, {1, 1, 0, 0, 0, true}, true, false, true},
      {"3 voters, 1 guest: crashes, no timer", 4, 1, {3, 0, 0, 0, 0, true}, true, true, true},
  };
  for (const Shape& shape : shapes) {
    if (shape.large && is_slow_build()) continue;
    CAPTURE(shape.name);
    CHECK(explore(shape) == "");
  }
}

// This takes minutes and gigabytes, so it runs only if it is named.
TEST_CASE("in worlds of four every order of events leads to one outcome, also with take-overs", "[.long]") {
  const Shape shapes[] = {
      {"3 voters, 1 guest: crash, suspicion", 4, 1, {1, 1, 0, 0, 0, true}},
      {"4 ranks: suspicion, take-over", 4, 0, {0, 1, 1, 0, 0, true}},
      {"4 ranks: crashes, take-over", 4, 0, {2, 0, 1, 0, 0, false}},
      {"4 ranks: crash, suspicions", 4, 0, {1, 2, 0, 0, 0, false}},
      {"4 ranks: crash, suspicion, take-over", 4, 0, {1, 1, 1, 0, 0, false}},
  };
  for (const Shape& shape : shapes) {
    CAPTURE(shape.name);
    CHECK(explore(shape) == "");
  }
}

TEST_CASE("a decision of a majority that dies does not reach those that decide by proofs") {
  CHECK(explore_after_majority_died(0, BrokenRule::none) == "");
  CHECK(explore_after_majority_died(0, BrokenRule::dead_may_be_heard).find("but rank") != std::string::npos);
}

TEST_CASE("a guest that has outlived the voters of its outcome misleads nobody") {
  CHECK(explore_after_majority_died(1, BrokenRule::none) == "");
  CHECK(explore_after_majority_died(1, BrokenRule::guests_believed).find("but rank") != std::string::npos);
}

TEST_CASE("the checks notice each broken rule") {
  const Shape three{"", 3, 0, {1, 1, 1, 0, 0, true}};
  const auto finds = [](const Shape& shape, BrokenRule broken, const char* text) {
    const std::string wrong = explore(shape, broken);
    CAPTURE(static_cast<int>(broken), wrong);
    CHECK(wrong.find(text) != std::string::npos);
  };
  finds({"", 4, 0, {1, 2, 0, 0, 0, true}}, BrokenRule::majority_of_living, "without a quorum");
  finds(three, BrokenRule::no_acceptances, "but rank");
  finds(three, BrokenRule::not_all_acceptances, "has not accepted");
  finds(three, BrokenRule::accepted_value_ignored, "but rank");
  finds(three, BrokenRule::promise_backwards, "but rank");
  finds(three, BrokenRule::silence_is_proof, "without a quorum");
  finds(three, BrokenRule::no_patience, "which everybody hears");
  finds(three, BrokenRule::decision_not_told, "was not told");
  finds({"", 3, 0, {0, 3, 0, 0, 2, true}}, BrokenRule::one_lineage, "but rank");
}

TEST_CASE("in larger worlds random faults lead to one outcome, and the timers to an end") {
  for (const std::uint64_t seed : seeds(10'000)) {
    CAPTURE(seed);
    REQUIRE(run_random(seed) == "");
  }
}
