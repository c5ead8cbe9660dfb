#include "tools/job/restart_policy.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using job::RestartPolicy;
using Act = job::RestartPolicy::Act;

namespace {

constexpr Instant at(std::int64_t milliseconds) { return {milliseconds * 1'000'000}; }

/// So many ranks that meet; `members` of them, from 0 on, are in the group.
RestartPolicy begin(int ranks, int members, RestartPolicy::Options options) {
  RestartPolicy policy(options);
  for (int rank = 0; rank < ranks; ++rank) policy.add(at(0));
  for (int rank = 0; rank < members; ++rank) policy.note_member(rank, {});
  return policy;
}

RestartPolicy::Options options(int least, int limit) {
  RestartPolicy::Options made;
  made.least = least;
  made.limit = limit;
  return made;
}

}  // namespace

TEST_CASE("a rank that fails is started again after a pause, and joins the others") {
  RestartPolicy policy = begin(3, 3, options(2, 3));
  CHECK(policy.decide(at(10)).act == Act::wait);
  CHECK(policy.note_exit(1, false, at(100)));
  const auto waits = policy.decide(at(100));
  CHECK(waits.act == Act::wait);
  CHECK(waits.until == at(1'100));
  CHECK(policy.decide(at(1'099)).act == Act::wait);
  const auto joins = policy.decide(at(1'100));
  CHECK(joins.act == Act::join);
  CHECK(joins.ranks == std::vector<int>{1});
  CHECK(policy.decide(at(1'100)).act == Act::wait);
}

TEST_CASE("pauses double up to the longest, and begin again when a rank ran for long enough") {
  RestartPolicy policy = begin(2, 2, options(1, 100));
  std::int64_t now = 0;
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    policy.note_exit(1, false, at(now));
    CHECK(policy.decide(at(now)).until == at(now + seconds * 1'000));
    now += seconds * 1'000;
    CHECK(policy.decide(at(now)).act == Act::join);
  }
  now += 60'000;
  policy.note_exit(1, false, at(now));
  CHECK(policy.decide(at(now)).until == at(now + 1'000));
}

TEST_CASE("the limit is that of each rank; with fewer ranks than needed the job ends") {
  const int least = GENERATE(1, 2);
  RestartPolicy policy = begin(2, 2, options(least, 1));
  CHECK(policy.note_exit(1, false, at(0)));
  CHECK(policy.decide(at(1'000)).act == Act::join);
  policy.note_member(1, {});
  CHECK_FALSE(policy.note_exit(1, false, at(2'000)));
  CHECK(policy.decide(at(2'000)).act == (least == 1 ? Act::wait : Act::give_up));
  CHECK(policy.counts(0));
  CHECK_FALSE(policy.counts(1));
}

TEST_CASE("where no member is left, all start anew together, at the last one's time") {
  RestartPolicy policy = begin(3, 3, options(2, 3));
  for (const int rank : {2, 0, 1}) policy.note_exit(rank, false, at(100 * rank));
  CHECK(policy.decide(at(1'100)).until == at(1'200));
  const auto anew = policy.decide(at(1'200));
  CHECK(anew.act == Act::start_anew);
  CHECK(anew.ranks == std::vector<int>{0, 1, 2});
}

TEST_CASE("ranks that have never met are ended when one fails, and start anew with it") {
  RestartPolicy policy = begin(3, 0, options(2, 3));
  policy.note_exit(1, false, at(0));
  const auto stop = policy.decide(at(0));
  CHECK(stop.act == Act::stop);
  CHECK(stop.ranks == std::vector<int>{0, 2});
  CHECK(policy.decide(at(0)).act == Act::wait);
  CHECK(policy.note_exit(0, false, at(10)));
  CHECK(policy.decide(at(10)).act == Act::wait);
  CHECK(policy.note_exit(2, false, at(10)));
  CHECK(policy.decide(at(10)).until == at(1'000));
  CHECK(policy.decide(at(1'000)).ranks == std::vector<int>{0, 1, 2});
  // To be ended is no failure.
  CHECK(policy.failures(0) == 0);
  CHECK(policy.failures(1) == 1);
}

TEST_CASE("without restarts nobody is ended because another one failed") {
  RestartPolicy policy = begin(3, 0, options(1, 0));
  CHECK_FALSE(policy.note_exit(1, false, at(0)));
  CHECK(policy.decide(at(0)).act == Act::wait);
  policy.note_exit(0, false, at(1));
  policy.note_exit(2, false, at(2));
  CHECK(policy.decide(at(2)).act == Act::end);
}

TEST_CASE("one that joins when the last member fails has nobody to join, and starts anew with the others") {
  RestartPolicy policy = begin(2, 2, options(1, 3));
  policy.note_exit(1, false, at(0));
  CHECK(policy.decide(at(1'000)).act == Act::join);
  policy.note_exit(0, false, at(1'100));
  const auto stop = policy.decide(at(1'100));
  CHECK(stop.act == Act::stop);
  CHECK(stop.ranks == std::vector<int>{1});
  policy.note_exit(1, false, at(1'110));
  CHECK(policy.decide(at(1'110)).until == at(2'100));
  CHECK(policy.decide(at(2'100)).act == Act::start_anew);
}

TEST_CASE("once a rank has ended well nobody is started again, and who still knocks is ended") {
  RestartPolicy policy = begin(3, 3, options(3, 3));
  policy.note_exit(1, false, at(0));
  CHECK(policy.decide(at(1'000)).act == Act::join);
  policy.note_exit(2, false, at(1'500));
  policy.note_exit(0, true, at(1'600));
  const auto stop = policy.decide(at(1'600));
  CHECK(stop.act == Act::stop);
  CHECK(stop.ranks == std::vector<int>{1});
  policy.note_exit(1, false, at(1'610));
  CHECK(policy.decide(at(1'610)).act == Act::end);
}

TEST_CASE("a rank that the others have left out is ended some time after they have ended") {
  RestartPolicy policy = begin(3, 0, options(1, 0));
  constexpr std::uint64_t kLineage = 7;
  for (int rank = 0; rank < 3; ++rank) policy.note_member(rank, {kLineage, 1});
  policy.note_member(0, {kLineage, 2});
  policy.note_member(2, {kLineage, 2});
  policy.note_exit(0, true, at(100));
  CHECK(policy.decide(at(50'000)).act == Act::wait);
  policy.note_exit(2, true, at(60'000));
  const auto waits = policy.decide(at(60'000));
  CHECK(waits.act == Act::wait);
  CHECK(waits.until == at(70'000));
  const auto stop = policy.decide(at(70'000));
  CHECK(stop.act == Act::stop);
  CHECK(stop.ranks == std::vector<int>{1});
  CHECK(policy.decide(at(70'000)).act == Act::wait);
  policy.note_exit(1, false, at(70'010));
  CHECK(policy.decide(at(70'010)).act == Act::end);
}

TEST_CASE("a rank that is as far as the others, or in another group, may take its time at the end") {
  const auto other = GENERATE(RestartPolicy::Group{7, 2}, RestartPolicy::Group{8, 1});
  RestartPolicy policy = begin(2, 0, options(1, 0));
  policy.note_member(0, {7, 2});
  policy.note_member(1, other);
  policy.note_exit(0, true, at(100));
  CHECK_FALSE(policy.decide(at(100)).until);
  CHECK(policy.decide(at(1'000'000)).act == Act::wait);
}

TEST_CASE("ranks of a lost machine are neither waited for nor started") {
  RestartPolicy policy = begin(4, 4, options(2, 3));
  policy.note_exit(3, false, at(0));
  policy.note_lost(3);
  policy.note_lost(2);
  CHECK(policy.decide(at(5'000)).act == Act::wait);
  policy.note_lost(1);
  CHECK(policy.decide(at(5'000)).act == Act::give_up);
}

TEST_CASE("with fewer members than are needed the job waits, and ends when nobody has come in time") {
  const bool comes = GENERATE(true, false);
  RestartPolicy::Options bounds = options(2, 3);
  bounds.wait = Duration::seconds(5);
  RestartPolicy policy = begin(2, 2, bounds);
  CHECK(policy.decide(at(0)).act == Act::wait);
  CHECK_FALSE(policy.short_since());
  policy.note_exit(1, false, at(100));
  CHECK(policy.decide(at(100)).until == at(1'100));
  CHECK(policy.short_since() == at(100));
  CHECK(policy.decide(at(1'100)).act == Act::join);
  CHECK(policy.decide(at(1'100)).until == at(5'100));
  if (comes) policy.note_member(1, {});
  CHECK(policy.decide(at(5'100)).act == (comes ? Act::wait : Act::give_up));
  CHECK(policy.short_since().has_value() != comes);
}

TEST_CASE("a group that begins is not short of those that have not told yet") {
  RestartPolicy::Options bounds = options(3, 3);
  bounds.wait = {};
  RestartPolicy policy = begin(3, 0, bounds);
  for (int rank = 0; rank < 3; ++rank) {
    policy.note_member(rank, {});
    CHECK(policy.decide(at(rank)).act == Act::wait);
  }
}

TEST_CASE("where others may come for the ranks of a lost machine, those that are left wait for them") {
  RestartPolicy::Options bounds = options(2, 3);
  bounds.wait = Duration::seconds(5);
  bounds.may_grow = true;
  RestartPolicy policy = begin(2, 2, bounds);
  policy.note_lost(1);
  const auto waits = policy.decide(at(0));
  CHECK(waits.act == Act::wait);
  CHECK(waits.until == at(5'000));
  SECTION("nobody comes") { CHECK(policy.decide(at(5'000)).act == Act::give_up); }
  SECTION("one comes") {
    policy.add_waiting(at(1'000));
    CHECK(policy.decide(at(1'000)).ranks == std::vector<int>{2});
    policy.note_member(2, {});
    CHECK(policy.decide(at(5'000)).act == Act::wait);
    CHECK_FALSE(policy.short_since());
  }
  SECTION("what is left fails, and does not start anew before one comes") {
    policy.note_exit(0, false, at(100));
    CHECK(policy.decide(at(2'000)).act == Act::wait);
    policy.add_waiting(at(3'000));
    const auto anew = policy.decide(at(3'000));
    CHECK(anew.act == Act::start_anew);
    CHECK(anew.ranks == std::vector<int>{0, 2});
  }
  SECTION("a rank that failed for good is not waited for") {
    policy.add_waiting(at(1'000));
    CHECK(policy.decide(at(1'000)).act == Act::join);
    for (int failure = 0; failure < 4; ++failure) {
      policy.note_exit(2, false, at(2'000 + failure * 60'000));
      policy.decide(at(3'000 + failure * 60'000));
    }
    CHECK(policy.decide(at(300'000)).act == Act::give_up);
  }
}

TEST_CASE("whatever happens, the job ends, and no rank is started more often than may be") {
  Campaign campaign("ranks of an elastic job fail, join and end at random");
  for (std::uint64_t seed = 0; seed < share_of(2'000); ++seed) {
    CAPTURE(seed);
    campaign.begin();
    std::minstd_rand random(static_cast<unsigned>(seed) + 1);
    const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    const int ranks = 1 + below(4), least = 1 + below(ranks), limit = below(4);
    RestartPolicy policy = begin(ranks, 0, options(least, limit));
    std::map<int, int> failures;
    std::int64_t now = 0;
    bool over = false, one_ended_well = false;
    for (int round = 0; round < 10'000 && !over; ++round) {
      now += below(2'000);
      const int rank = below(ranks);
      const int what = below(20);
      const bool ran = policy.runs(rank);
      if (what < 8 && ran) {
        policy.note_member(rank, {});
      } else if (what < 19 && ran) {
        const bool was_failing = policy.note_exit(rank, false, at(now));
        CHECK((was_failing || one_ended_well || policy.failures(rank) == limit + 1));
      } else if (ran && below(10) == 0) {
        policy.note_exit(rank, true, at(now));
        one_ended_well = true;
      } else if (below(40) == 0) {
        policy.note_lost(rank);
      }
      for (bool again = true; again && !over;) {
        const auto decision = policy.decide(at(now));
        over = decision.act == Act::end || decision.act == Act::give_up;
        again = decision.act == Act::join || decision.act == Act::start_anew || decision.act == Act::stop;
        for (const int one : decision.ranks) {
          CHECK(policy.runs(one));
          if (decision.act == Act::join || decision.act == Act::start_anew) CHECK_FALSE(one_ended_well);
        }
      }
      CHECK(policy.failures(rank) <= limit + 1);
    }
    CHECK(over);
    campaign.goes_well();
  }
}
