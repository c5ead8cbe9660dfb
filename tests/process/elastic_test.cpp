#include <signal.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

pid_t pid_of(const std::string& output, int rank) {
  const std::string mark = "rank " + std::to_string(rank) + " of 3 begins, process ";
  const std::size_t at = output.find(mark);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(output.substr(at + mark.size())));
}

}  // namespace

TEST_CASE("a job goes on without a rank that was killed, and all that are left end with the same result") {
  const int victim = GENERATE(0, 1, 2);
  CommandProcess process({"launch", "--elastic", "-n", "3", "--no-prefix", "--", RINGLET_ELASTIC_EXAMPLE, "5000"});
  for (int rank = 0; rank < 3; ++rank) process.wait_for_stdout("rank " + std::to_string(rank) + " of 3 begins, process ");
  process.wait_for_stdout("\n");
  ::kill(pid_of(process.out(), victim), SIGKILL);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("went on to the end without rank " + std::to_string(victim) + " (killed by SIGKILL)"));
  CHECK_THAT(outcome.out, Contains("2 of 3 ranks go on"));
  std::set<std::string> results;
  int done = 0;
  for (const std::string& line : sorted_lines(outcome.out)) {
    const std::size_t at = line.find(" is done: ");
    if (at == std::string::npos) continue;
    ++done;
    results.insert(line.substr(at));
  }
  CHECK(done == 2);
  CHECK(results.size() == 1);
  CHECK_THAT(*results.begin(), Contains("y = 2.9999") || Contains("y = 3 "));
}
