// Tests of elastic jobs on machines that come and go.
#include <signal.h>

#include <catch2/catch.hpp>
#include <regex>
#include <string>

#include "tests/process/home_of_machines.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("ranks of an elastic job come back, and machines that come up join it, up to the most ranks") {
  if (!networks_are_here()) return;
  Home home({RINGLET_ELASTIC_EXAMPLE});
  // One machine is not there yet.
  home.agents[2]->send(SIGTERM);
  CHECK(home.agents[2]->finish().exit_code == 0);
  const Process job = home.run({"--elastic", "2:3", "--no-prefix"}, {RINGLET_ELASTIC_EXAMPLE, "10000", "2"});
  job->wait_for_stdout("of 2 begins, process ", 2);

  home.agents[2] = home.up(2, {"--allow", RINGLET_ELASTIC_EXAMPLE});
  job->wait_for_stderr("host3 joins with 1 rank");
  job->wait_for_stdout("rank 2 of 3 begins, process ");
  job->wait_for_stderr("epoch 1: 3 ranks, 1 of them new");

  // The newcomer's rank is killed, and comes back.
  job->wait_for_stdout("\n", 4);
  const std::string mark = "rank 2 of 3 begins, process ";
  ::kill(static_cast<pid_t>(std::stol(job->out().substr(job->out().find(mark) + mark.size()))), SIGKILL);
  job->wait_for_stderr("is started again (failure 1 of 3)");
  job->wait_for_stderr("epoch 3: 3 ranks, 1 of them new");

  // A machine leaves with its rank, rank 0 of the group, and another `ringlet up` there joins again.
  home.agents[0]->send(SIGKILL);
  home.agents[0]->finish();
  job->wait_for_stderr("epoch 4: 2 ranks without rank 0 of the epoch before");
  home.agents[0] = home.up(0, {"--allow", RINGLET_ELASTIC_EXAMPLE});
  job->wait_for_stderr("host1 joins with 1 rank");
  job->wait_for_stderr("epoch 5: 3 ranks, 1 of them new");

  const Outcome outcome = job->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err,
             Contains("ranks 1, 2, 3 went on to the end without rank 0 on host1 (lost with its machine); started again: rank 2 (once)"));
  home.end();
}

TEST_CASE("a job that has too few ranks waits for a machine to come up, and takes no step meanwhile") {
  if (!networks_are_here()) return;
  Home home({RINGLET_ELASTIC_EXAMPLE});
  const Process job = home.run({"--elastic", "2:2", "--machines", "host2,host3", "--no-prefix"}, {RINGLET_ELASTIC_EXAMPLE, "3000", "2"});
  job->wait_for_stdout("of 2 begins, process ", 2);
  // Its owner ends it, and begins again.
  home.agents[1]->send(SIGINT);
  CHECK(home.agents[1]->finish().exit_code == 0);
  job->wait_for_stderr("a machine takes no part any more; host2: its owner ended `ringlet up`");
  job->wait_for_stderr("1 of the 2 ranks that the job needs is there; it waits 600 s at most for another machine to come up (--min-wait)");
  home.agents[1] = home.up(1, {"--allow", RINGLET_ELASTIC_EXAMPLE});
  job->wait_for_stderr("host2 joins with 1 rank");
  const Outcome outcome = job->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  std::smatch lost, joined;
  REQUIRE(std::regex_search(outcome.out, lost, std::regex(R"(step (\d+): 1 of 2 ranks go on)")));
  REQUIRE(std::regex_search(outcome.out, joined, std::regex(R"(step (\d+): 2 ranks go on, 1 of them new)")));
  CHECK(lost[1] == joined[1]);
  home.end();
}

TEST_CASE("a rank is not started again on a machine that was removed, on either side, while the job runs") {
  if (!networks_are_here()) return;
  const bool by_the_asking_one = GENERATE(true, false);
  CAPTURE(by_the_asking_one);
  Home home({RINGLET_ELASTIC_EXAMPLE});
  const Process job = home.run({"--elastic", "1:3"}, {RINGLET_ELASTIC_EXAMPLE, "3000", "2"});
  job->wait_for_stdout("of 3 begins, process ", 3);
  job->wait_for_stdout("\n", 3);
  const NetworkHost& remover = home.network.host(by_the_asking_one ? 0 : 1);
  const std::string removed = by_the_asking_one ? "host2" : "host1";
  REQUIRE(remover.run({"machines", "remove", removed, "--group", "home"})->finish().exit_code == 0);
  const std::string mark = "[1 host2] rank 1 of 3 begins, process ";
  ::kill(static_cast<pid_t>(std::stol(job->out().substr(job->out().find(mark) + mark.size()))), SIGKILL);
  job->wait_for_stderr("a machine takes no part any more; ");
  const Outcome outcome = job->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("went on to the end without rank 1 on host2"));
  home.end();
}
