#include <signal.h>

#include <algorithm>

#include "tests/agent/elastic_run.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("a rank of another machine is started again there, and gets the doors of those that live") {
  ElasticRun run(3, 2, 3);
  run.begin();
  CHECK(run.crew(1).started->elastic);
  run.crew(1).end(1, 0, SIGKILL);
  run.await_restarts({1});
  CHECK(run.crew(1).restarted.front() == job::RestartRanks{{1}, run.machines[0].node.host() + ":1," + run.machines[2].node.host() + ":1"});
  run.world.run_for(Duration::milliseconds(100));
  run.crew(1).enter({1, 2, 0, 3, "door-of-1:1"});
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
  CHECK(run.result->ranks[1].restarts == 1);
  CHECK(run.result->ranks[1].pid == 2001);
  CHECK(run.result->message == "all ranks went on to the end; started again: rank 1 (once)");
  REQUIRE(run.notices.size() == 1);
  CHECK(run.notices[0] == "rank 1 on m1 (pid 1001) was killed by SIGKILL, and is started again (failure 1 of 3)");
}

TEST_CASE("a change of the group is told once, whoever says it") {
  ElasticRun run(3, 1, 3);
  run.begin();
  for (const std::uint32_t rank : {0u, 2u}) run.crew(rank).enter({rank, 1, 0, 2, "door:1", 0, {1}, "lost rank 1", 12'345});
  run.crew(0).enter({0, 2, 0, 3, "door:1", 1, {}, "", 800});
  REQUIRE(run.run_until([&] { return run.notices.size() == 2; }) == RunEnd::done);
  CHECK(run.notices[0] == "epoch 1: 2 ranks without rank 1 of the epoch before, after 12.3 ms: lost rank 1");
  CHECK(run.notices[1] == "epoch 2: 3 ranks, 1 of them new, after 0.8 ms");
  run.end_all_well();
  run.run_to_end();
}

TEST_CASE("where all ranks have failed, they start anew, and meet on the first machine that is left") {
  ElasticRun run(3, 2, 3);
  run.begin();
  SECTION("all machines are there") {
    for (std::uint32_t rank = 0; rank < 3; ++rank) run.crew(rank).end(rank, 1);
    run.await_restarts({0, 1, 2});
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      CHECK(run.crew(rank).restarted.front() == job::RestartRanks{{rank}, "", rank, 3, run.machines[0].node.host() + ":4711"});
  }
  SECTION("the first one is lost") {
    run.world.stop(run.machines[0].node, StopKind::resets_links).in({});
    run.world.run_for(Duration::milliseconds(100));
    for (std::uint32_t rank = 1; rank < 3; ++rank) run.crew(rank).end(rank, 1);
    run.await_restarts({1, 2});
    CHECK(run.crew(1).meeting_host == "0.0.0.0");
    for (std::uint32_t rank = 1; rank < 3; ++rank)
      CHECK(run.crew(rank).restarted.front() == job::RestartRanks{{rank}, "", rank - 1, 2, run.machines[1].node.host() + ":4711"});
  }
  run.world.run_for(Duration::milliseconds(100));
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
  CHECK_THAT(run.result->message, Contains("rank 1 (once), rank 2 (once)"));
}

TEST_CASE("with too few ranks the job ends, and says who failed how often") {
  ElasticRun run(2, 2, 1);
  run.machines[1].on_restarted = [](FakeCrew& crew, const job::RestartRanks&) { crew.end(1, 7); };
  run.begin();
  run.crew(1).end(1, 7);
  run.run_to_end();
  CHECK(run.result->exit_code == 7);
  CHECK(run.result->message ==
        "fewer than 2 ranks are left: rank 0 on m0 (stopped), rank 1 on m1 (exited with code 7, started again once)");
}

TEST_CASE("a lost machine's ranks are given up") {
  const int least = GENERATE(1, 2);
  ElasticRun run(2, least, 3);
  run.begin();
  run.world.stop(run.machines[1].node, StopKind::resets_links).in({});
  run.world.run_for(Duration::milliseconds(100));
  if (least == 1) run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == (least == 1 ? 0 : 1));
  CHECK_THAT(run.result->message, Contains("rank 1 on m1 (lost with its machine)"));
}

TEST_CASE("the loss of the machine where all are to meet makes them meet on another one") {
  for (std::int64_t moment = 0; moment < 40; ++moment) {
    CAPTURE(moment);
    ElasticRun run(3, 1, 3);
    run.begin();
    for (std::uint32_t rank = 0; rank < 3; ++rank) run.crew(rank).end(rank, 1);
    run.world.stop(run.machines[0].node, StopKind::resets_links).in(Duration::milliseconds(980) + Duration::milliseconds(moment));
    for (const std::size_t machine : {1u, 2u})
      run.machines[machine].on_restarted = [](FakeCrew& crew, const job::RestartRanks& order) {
        if (order.world_size == 2) crew.end(order.ranks.front(), 0);
        // Its rank 0 is gone with its machine.
        if (order.world_size == 3) crew.end(order.ranks.front(), 1);
      };
    run.run_to_end();
    CHECK(run.result->exit_code == 0);
  }
}

TEST_CASE("a signal ends a job whose ranks wait to be started again") {
  ElasticRun run(2, 1, 3);
  run.begin();
  for (std::uint32_t rank = 0; rank < 2; ++rank) run.crew(rank).end(rank, 1);
  run.world.run_for(Duration::milliseconds(100));
  CHECK_FALSE(run.result);
  CHECK_FALSE(run.job->ranks_over());
  run.job->on_signal(SIGINT);
  run.run_to_end();
  CHECK(run.result->exit_code == 128 + SIGINT);
}

TEST_CASE("a machine that comes while the job runs joins it, up to the most ranks") {
  ElasticRun run(3, 1, 3);
  run.options.most = 2;
  FakeMachine& newcomer = run.machines[2];
  run.skipped.insert(2);
  run.begin();
  CHECK(run.job->wanted_ranks() == 0);
  run.world.stop(run.machines[1].node, StopKind::resets_links).in({});
  run.world.run_for(Duration::milliseconds(100));
  CHECK(run.job->wanted_ranks() == 1);
  newcomer.free_ranks = 0;
  run.add(2);
  run.world.run_for(Duration::milliseconds(100));
  CHECK(newcomer.crew == nullptr);
  newcomer.free_ranks = 4;
  run.add(2);
  run.await_restarts({2});
  const job::RestartRanks& order = newcomer.crew->restarted.front();
  CHECK(order == job::RestartRanks{{2}, run.machines[0].node.host() + ":1"});
  CHECK(newcomer.crew->started->waits);
  CHECK(newcomer.crew->started->world_size == 3);
  CHECK(run.job->wanted_ranks() == 0);
  CHECK(run.added == 1);
  run.world.run_for(Duration::milliseconds(100));
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
  CHECK(run.result->message == "ranks 0, 2 went on to the end without rank 1 on m1 (lost with its machine)");
  CHECK(run.result->ranks[2].restarts == 0);
  CHECK(run.result->ranks[2].pid == 2002);
}

TEST_CASE("a machine that comes late and refuses, or is lost, costs the job nothing") {
  const bool refuses = GENERATE(true, false);
  ElasticRun run(2, 1, 3);
  run.options.most = 2;
  run.skipped.insert(1);
  run.begin();
  if (refuses) run.machines[1].refusal = "no";
  if (!refuses) run.machines[1].silent = true;
  run.add(1);
  run.world.run_for(Duration::milliseconds(100));
  if (!refuses) run.world.stop(run.machines[1].node, StopKind::resets_links).in({});
  run.world.run_for(Duration::milliseconds(100));
  REQUIRE(run.notices.size() == 1);
  CHECK_THAT(run.notices[0], Contains("the job goes on without another machine"));
  CHECK(run.job->may_return(1) == false);
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
  CHECK(run.result->ranks.size() == 1);
}

TEST_CASE("a job ends although a machine has not answered whether it would join") {
  ElasticRun run(2, 1, 3);
  run.options.most = 2;
  run.skipped.insert(1);
  run.machines[1].silent = true;
  run.begin();
  run.add(1);
  run.world.run_for(Duration::milliseconds(100));
  run.end_all_well();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("a job does not begin with more ranks than it may have, or with fewer") {
  ElasticRun run(3, 2, 3);
  run.options.most = 2;
  SECTION("more") {
    run.begin();
    CHECK(run.machines[2].crew == nullptr);
    run.end_all_well();
    run.run_to_end();
    CHECK(run.result->ranks.size() == 2);
  }
  SECTION("fewer") {
    run.machines[0].refusal = run.machines[1].refusal = "no";
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 1);
    CHECK_THAT(run.result->error, Contains("1 rank can be had, and the job needs 2"));
  }
}
