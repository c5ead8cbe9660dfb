#include <algorithm>
#include <catch2/catch.hpp>

#include "core/elastic/agreement.hpp"
#include "sim/sim_random.hpp"

using namespace ringlet;

namespace {

using Ranks = std::vector<std::uint32_t>;

constexpr std::uint32_t kEpoch = 4;
constexpr std::uint64_t kLineage = 9;

/// The first `size - guests` ranks vote.
Agreement make_agreement(int size, int self, int guests = 0) {
  std::vector<bool> votes(static_cast<std::size_t>(size), true);
  for (int guest = 1; guest <= guests; ++guest) votes[static_cast<std::size_t>(size - guest)] = false;
  return Agreement({size, self, kEpoch, kLineage, votes});
}

std::vector<Agreement> make_world(int size, int guests = 0) {
  std::vector<Agreement> world;
  for (int rank = 0; rank < size; ++rank) world.push_back(make_agreement(size, rank, guests));
  return world;
}

void deliver_all(std::vector<Agreement>& world) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < world.size(); ++rank)
      for (const auto& send : world[rank].take_sends()) {
        world[static_cast<std::size_t>(send.to)].receive(static_cast<int>(rank), send.message);
        moved = true;
      }
  }
}

void start_all(std::vector<Agreement>& world) {
  for (Agreement& agreement : world) agreement.start();
}

/// Both ends of the link between each rank of `one` and each of `other` break.
void part(std::vector<Agreement>& world, const std::vector<int>& one, const std::vector<int>& other) {
  for (const int a : one)
    for (const int b : other) {
      world[static_cast<std::size_t>(a)].lose(b);
      world[static_cast<std::size_t>(b)].lose(a);
    }
}

bool has_decided(const Agreement& agreement, const Ranks& members) { return agreement.outcome() == Agreement::Outcome{members, kLineage}; }

template <class Kind>
const Kind* last_sent(const std::vector<Agreement::Send>& sends) {
  return sends.empty() ? nullptr : std::get_if<Kind>(&sends.back().message);
}

}  // namespace

TEST_CASE("a world of one decides when it starts") {
  Agreement agreement = make_agreement(1, 0);
  CHECK_FALSE(agreement.outcome());
  agreement.start();
  CHECK(has_decided(agreement, {0}));
  CHECK(agreement.take_sends().empty());
}

TEST_CASE("without faults the world stays as it is, guests included") {
  std::vector<Agreement> world = make_world(5, 2);
  start_all(world);
  CHECK(world[0].leads());
  deliver_all(world);
  for (const Agreement& agreement : world) CHECK(has_decided(agreement, {0, 1, 2, 3, 4}));
}

TEST_CASE("of two voters the other one decides at once when one is proved dead, whichever leads") {
  for (const int self : {0, 1}) {
    Agreement agreement = make_agreement(2, self);
    agreement.start();
    agreement.lose(1 - self);
    CHECK_FALSE(agreement.outcome());
    CHECK(agreement.lacks_quorum());
    CHECK(agreement.unproved() == std::vector<int>{1 - self});
    agreement.prove_dead(1 - self);
    CHECK(has_decided(agreement, {static_cast<std::uint32_t>(self)}));
  }
}

TEST_CASE("two of four decide when the other two are proved dead, also by a proof that only one of them has") {
  std::vector<Agreement> world = make_world(4);
  start_all(world);
  part(world, {2, 3}, {0, 1});
  for (const int dead : {0, 1}) world[static_cast<std::size_t>(dead)] = make_agreement(4, dead);
  deliver_all(world);
  CHECK(world[2].leads());
  CHECK(world[2].lacks_quorum());
  world[2].prove_dead(0);
  world[3].prove_dead(1);
  deliver_all(world);
  CHECK(has_decided(world[2], {2, 3}));
  CHECK(has_decided(world[3], {2, 3}));
}

TEST_CASE("the next leader proposes what the last one had accepted, although that one is dead now") {
  std::vector<Agreement> world = make_world(3);
  start_all(world);
  // Rank 1 accepts the proposal of rank 0, which dies before anybody learns that it was accepted.
  const auto query = world[0].take_sends();
  world[1].receive(0, query[0].message);
  world[2].receive(0, query[1].message);
  world[0].receive(1, world[1].take_sends()[0].message);
  world[0].receive(2, world[2].take_sends()[0].message);
  const auto proposal = world[0].take_sends();
  world[1].receive(0, proposal[0].message);
  (void)world[1].take_sends();
  for (const std::size_t rank : {1U, 2U}) world[rank].lose(0);
  world[0] = make_agreement(3, 0);
  deliver_all(world);
  CHECK(has_decided(world[1], {0, 1, 2}));
  CHECK(has_decided(world[2], {0, 1, 2}));
}

TEST_CASE("of two ranks that do not hear each other the higher one is evicted, but not before the timer") {
  std::vector<Agreement> world = make_world(3);
  part(world, {1}, {2});
  start_all(world);
  deliver_all(world);
  CHECK_FALSE(world[0].outcome());
  CHECK_FALSE(world[0].lacks_quorum());
  world[0].stop_waiting_for_reports();
  deliver_all(world);
  for (const Agreement& agreement : world) CHECK(has_decided(agreement, {0, 1}));
}

TEST_CASE("halves that stand alone are of different lineages") {
  std::vector<Agreement> world = make_world(4);
  part(world, {0, 1}, {2, 3});
  start_all(world);
  deliver_all(world);
  for (const std::size_t leader : {0U, 2U}) {
    CHECK(world[leader].lacks_quorum());
    world[leader].stand_alone();
  }
  deliver_all(world);
  CHECK(world[0].outcome() == world[1].outcome());
  CHECK(world[2].outcome() == world[3].outcome());
  REQUIRE((world[0].outcome() && world[2].outcome()));
  CHECK(world[0].outcome()->members == Ranks{0, 1});
  CHECK(world[2].outcome()->members == Ranks{2, 3});
  CHECK(world[0].outcome()->lineage != world[2].outcome()->lineage);
  for (const Agreement& agreement : world) CHECK(agreement.outcome()->lineage != kLineage);
}

TEST_CASE("one that stands alone twice is of another lineage each time") {
  std::vector<Agreement> world = make_world(4);
  part(world, {0, 1}, {2, 3});
  start_all(world);
  deliver_all(world);
  world[0].stand_alone();
  const auto first = world[0].take_sends();
  const auto* proposal = last_sent<wire::Proposal>(first);
  REQUIRE(proposal != nullptr);
  world[0].take_over();
  world[0].lose(1);
  world[0].stand_alone();
  REQUIRE(world[0].outcome());
  CHECK(world[0].outcome()->members == Ranks{0});
  CHECK(world[0].outcome()->lineage != proposal->lineage);
}

TEST_CASE("a rank whose epoch has not ended yet answers when it has") {
  std::vector<Agreement> world = make_world(2);
  world[0].start();
  deliver_all(world);
  CHECK_FALSE(world[0].outcome());
  world[1].start();
  deliver_all(world);
  for (const Agreement& agreement : world) CHECK(has_decided(agreement, {0, 1}));
}

TEST_CASE("a rank that was refused leads again by take_over() only, in a higher ballot") {
  std::vector<Agreement> world = make_world(3);
  start_all(world);
  world[1].take_over();
  world[2].receive(1, world[1].take_sends()[1].message);
  world[0].receive(2, wire::Report{kEpoch, std::uint64_t{1} << 32, std::uint64_t{7} << 32 | 1U, 0, {}, 0, {0, 1}, {}});
  CHECK_FALSE(world[0].leads());
  (void)world[0].take_sends();
  world[0].take_over();
  const auto sends = world[0].take_sends();
  const auto* query = last_sent<wire::Query>(sends);
  REQUIRE(query != nullptr);
  CHECK(query->ballot == std::uint64_t{8} << 32);
}

TEST_CASE("messages that make no sense are ignored, and none of them crashes a rank") {
  SimRandom random(5);
  const auto rank = [&] { return static_cast<std::uint32_t>(random.below(20) == 0 ? random.next() : random.below(6)); };
  const auto ballot = [&] { return random.below(10) == 0 ? random.next() : random.below(4) << 32 | rank(); };
  const auto ranks = [&] {
    Ranks list;
    for (auto count = random.below(5); count > 0; --count) list.push_back(rank());
    if (random.below(2) == 0) std::sort(list.begin(), list.end());
    return list;
  };
  const auto lineage = [&] { return random.below(3) == 0 ? random.next() : kLineage; };
  for (int world = 0; world < 3000; ++world) {
    Agreement agreement = make_agreement(5, static_cast<int>(random.below(5)), static_cast<int>(random.below(3)));
    if (random.below(4) != 0) agreement.start();
    for (int count = 0; count < 30; ++count) {
      const int peer = static_cast<int>(random.below(8)) - 1;
      switch (random.below(12)) {
        case 0:
          agreement.lose(peer);
          break;
        case 1:
          agreement.prove_dead(peer);
          break;
        case 2:
          agreement.take_over();
          break;
        case 3:
          agreement.stop_waiting_for_reports();
          break;
        case 4:
          agreement.stand_alone();
          break;
        case 5:
          agreement.start();
          break;
        case 6:
          agreement.receive(peer, wire::Query{kEpoch, ballot()});
          break;
        case 7:
          agreement.receive(peer, wire::Proposal{kEpoch, ballot(), ranks(), lineage()});
          break;
        case 8:
          agreement.receive(peer, wire::Acceptance{kEpoch, ballot()});
          break;
        case 9:
          if (random.below(10) == 0) agreement.receive(peer, wire::Decision{kEpoch, ranks(), lineage()});
          break;
        default:
          agreement.receive(peer, wire::Report{kEpoch, ballot(), ballot(), ballot(), ranks(), lineage(), ranks(), ranks()});
      }
      for (const auto& send : agreement.take_sends()) REQUIRE((send.to >= 0 && send.to < 5 && agreement.hears(send.to)));
      if (agreement.outcome()) REQUIRE(std::is_sorted(agreement.outcome()->members.begin(), agreement.outcome()->members.end()));
    }
  }
}
