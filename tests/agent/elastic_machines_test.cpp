// Tests of elastic jobs whose machines come and go, or may take part no more.
#include <signal.h>

#include <algorithm>
#include <string>

#include "tests/agent/elastic_run.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("with fewer ranks than it needs a job waits for a machine to come up") {
  const bool comes = GENERATE(true, false);
  CAPTURE(comes);
  ElasticRun run(3, 2, 3);
  run.options.most = 2;
  run.options.end.elastic->may_grow = true;
  run.options.end.elastic->wait = Duration::seconds(20);
  run.skipped.insert(2);
  run.begin();
  run.world.stop(run.machines[1].node, StopKind::resets_links).in({});
  run.world.run_for(Duration::seconds(10));
  CHECK_FALSE(run.result);
  CHECK(run.crew(0).running.size() == 1);
  REQUIRE(run.notices.size() == 2);
  CHECK_THAT(run.notices[0], Contains("lost m1 ("));
  CHECK(run.notices[1] ==
        "1 of the 2 ranks that the job needs is there; it waits 20 s at most for another machine to come up (--min-wait)");
  if (!comes) {
    run.run_to_end();
    CHECK(run.result->exit_code == 1);
    CHECK_THAT(run.result->message, Contains("fewer than 2 ranks were there for 20 s (--min-wait); lost m1 (") &&
                                        Contains("rank 0 on m0 (stopped), rank 1 on m1 (lost with its machine)"));
    return;
  }
  CHECK(run.job->wanted_ranks() == 1);
  run.add(2);
  run.await_restarts({2});
  run.crew(2).enter(2, 1, 2);
  run.world.run_for(Duration::seconds(20));
  CHECK_FALSE(run.result);
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("a machine that comes late gets as many ranks as are missing") {
  ElasticRun run(3, 3, 3);
  run.options.most = 4;
  run.options.wish = {4, 1};
  run.options.end.elastic->may_grow = true;
  for (FakeMachine& machine : run.machines) machine.on_started = nullptr;
  run.skipped.insert(2);
  run.begin();
  run.world.stop(run.machines[1].node, StopKind::resets_links).in({});
  run.world.run_for(Duration::milliseconds(100));
  CHECK(run.job->wanted_ranks() == 1);
  run.add(2);
  run.world.run_for(Duration::milliseconds(100));
  CHECK(run.job->wanted_ranks() == 1);
  run.job->on_signal(SIGTERM);
  run.run_to_end();
}

TEST_CASE("a machine whose owner ends `ringlet up` is let go") {
  const int least = GENERATE(1, 2);
  ElasticRun run(2, least, 3);
  run.begin();
  run.machines[1].session->end("its owner ended `ringlet up`");
  run.world.run_for(Duration::milliseconds(100));
  REQUIRE_FALSE(run.notices.empty());
  CHECK(run.notices[0] == "a machine takes no part any more; m1: its owner ended `ringlet up`");
  CHECK(run.crew(0).running.contains(0));
  if (least == 1) run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == (least == 1 ? 0 : 1));
  CHECK(run.result->message == (least == 1 ? "rank 0 went on to the end without rank 1 on m1 (stopped)"
                                           : "fewer than 2 ranks are left; m1: its owner ended `ringlet up`: rank 0 on m0 (stopped), "
                                             "rank 1 on m1 (stopped)"));
}

TEST_CASE("no rank is started again where the owner of a machine does not allow it any more") {
  const bool anew = GENERATE(false, true);
  CAPTURE(anew);
  ElasticRun run(3, 1, 3);
  run.begin();
  run.machines[1].withdrawal = job::Failed{126, "desk is not trusted here any more"};
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    if (anew || rank == 1) run.crew(rank).end(rank, 1);
  if (anew) run.await_restarts({0, 2});
  run.world.run_for(Duration::seconds(3));
  CHECK((run.machines[1].crew == nullptr || run.crew(1).restarted.empty()));
  CHECK_THAT(run.notices.back(), Contains("a machine takes no part any more; m1: desk is not trusted here any more"));
  CHECK_FALSE(run.result);
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("no rank is started again on a machine that is not trusted any more, and those that run there are ended") {
  const bool anew = GENERATE(false, true);
  CAPTURE(anew);
  std::string distrusted;
  ElasticRun run(3, 1, 3);
  run.options.wish = {6, 1};
  run.options.check_identity = [&](const job::Candidate& candidate, const job::Offer&, const LinkBinding&) {
    return candidate.name == distrusted ? std::optional(distrusted + " was removed") : std::nullopt;
  };
  for (FakeMachine& machine : run.machines)
    machine.on_started = [](FakeCrew& crew) {
      for (const std::uint32_t rank : std::set<std::uint32_t>(crew.running)) crew.enter(rank, 0, 6);
    };
  run.begin();
  distrusted = "m0";
  for (std::uint32_t rank = 0; rank < 6; ++rank)
    if (anew || rank == 0) run.crew(rank / 2).end(rank, 1);
  if (anew) run.await_restarts({1, 2});
  run.world.run_for(Duration::seconds(3));
  CHECK((run.machines[0].crew == nullptr || (run.crew(0).restarted.empty() && run.crew(0).running.empty())));
  CHECK(std::find(run.notices.begin(), run.notices.end(), "a machine takes no part any more; m0 was removed") != run.notices.end());
  if (anew) CHECK(run.crew(1).restarted.front() == job::RestartRanks{{2, 3}, "", 0, 4, run.machines[1].node.host() + ":4711"});
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("a machine that comes late and whose owner forbids the order costs the job nothing, and is not asked again") {
  ElasticRun run(2, 1, 3);
  run.options.most = 2;
  run.skipped.insert(1);
  run.begin();
  run.machines[1].failure = job::Failed{126, "LD_PRELOAD: this variable may not be set"};
  run.add(1);
  run.world.run_for(Duration::milliseconds(100));
  CHECK_FALSE(run.result);
  CHECK_THAT(run.notices.back(), Contains("a machine takes no part any more; m1: LD_PRELOAD"));
  CHECK_FALSE(run.job->may_return(1));
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("a quiet job says nothing of its ranks' coming and going") {
  ElasticRun run(3, 1, 3);
  run.options.quiet = true;
  run.options.most = 3;
  run.skipped.insert(2);
  run.begin();
  run.crew(1).end(1, 0, SIGKILL);
  run.await_restarts({1});
  run.crew(0).enter({0, 1, 0, 1, "door:1", 0, {1}, "lost rank 1", 12'345});
  run.add(2);
  run.world.run_for(Duration::milliseconds(100));
  run.end_all_well();
  run.run_to_end();
  CHECK(run.notices.empty());
  CHECK_THAT(run.result->message, Contains("started again: rank 1 (once)"));
}

TEST_CASE("ranks meet, and knock, at the addresses by which machines are reached, whichever of them is first") {
  ElasticRun run(3, 1, 3);
  std::vector<std::size_t> asked;
  run.options.choose_meeting = [&](const std::vector<job::Participant>& participants) {
    asked.clear();
    for (const job::Participant& one : participants) asked.push_back(one.machine);
    return job::MeetingPoint{{"0.0.0.0", 0}, "host-of-" + participants.front().offer.name};
  };
  run.begin();
  CHECK(run.crew(1).started->coordinator == "host-of-m0:4711");
  SECTION("one joins") {
    run.crew(1).end(1, 1);
    run.await_restarts({1});
    CHECK(run.crew(1).restarted.front().join == "host-of-m0:1,host-of-m2:1");
  }
  SECTION("a rank of the first machine has failed for good, and the others start anew") {
    for (int failure = 0; failure < 4; ++failure) {
      run.crew(0).end(0, 1);
      run.world.run_for(Duration::seconds(10));
    }
    for (std::uint32_t rank = 1; rank < 3; ++rank) run.crew(rank).end(rank, 1);
    run.await_restarts({1, 2});
    CHECK(asked == std::vector<std::size_t>{1, 2});
    CHECK(run.crew(2).restarted.front() == job::RestartRanks{{2}, "", 1, 2, "host-of-m1:4711"});
  }
  run.end_all_well();
  run.run_to_end();
}
