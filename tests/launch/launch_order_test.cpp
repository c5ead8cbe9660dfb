#include <signal.h>

#include <catch2/catch.hpp>
#include <regex>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("the first rank to fail is named, even if all have failed by the time the launcher looks") {
  CommandProcess process(script_arguments(
      {"-n", "4", "--stdin", "2"},
      "trap 'exit 1' USR1; echo ready $$ .; if [ $RINGLET_RANK = 2 ]; then read x; exit 3; fi; while :; do sleep 1000 & wait; done"));
  process.wait_for_stdout(" .\n", 4);
  std::vector<pid_t> pids(4, 0);
  const std::string out = process.out();
  const std::regex ready(R"(\[(\d)\] ready (\d+) \.)");
  for (auto match = std::sregex_iterator(out.begin(), out.end(), ready); match != std::sregex_iterator(); ++match)
    pids.at(static_cast<std::size_t>(std::stoi((*match)[1]))) = std::stoi((*match)[2]);

  process.send(SIGSTOP);
  process.write_stdin("\n");
  wait_for_death(pids[2]);
  for (const std::size_t rank : {0, 1, 3}) {
    REQUIRE(::kill(pids[rank], SIGUSR1) == 0);
    wait_for_death(pids[rank]);
  }
  process.send(SIGCONT);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("rank 2 (pid " + std::to_string(pids[2]) + ") exited with code 3; after it failed ranks 0, 1, 3"));
}
