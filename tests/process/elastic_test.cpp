#include <signal.h>

#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

pid_t pid_of(const std::string& output, int rank, int ranks = 3) {
  const std::string mark = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " begins, process ";
  const std::size_t at = output.rfind(mark);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(output.substr(at + mark.size())));
}

/// Runs the example on three ranks, which are so slow that they are still there when one has been started again.
class ElasticLaunch {
 public:
  explicit ElasticLaunch(std::vector<std::string> options) : process(arguments(std::move(options))) {
    for (int rank = 0; rank < 3; ++rank) process.wait_for_stdout("rank " + std::to_string(rank) + " of 3 begins, process ");
    process.wait_for_stdout("\n", 3);
  }
  void kill_rank(int rank) { ::kill(pid_of(process.out(), rank), SIGKILL); }

  /// Checks that so many ranks ended with the same result, and returns how the job ended.
  Outcome finish(int ranks) {
    const Outcome outcome = process.finish();
    CAPTURE(outcome.out, outcome.err);
    std::multiset<std::string> results;
    for (const std::string& line : sorted_lines(outcome.out))
      if (const std::size_t at = line.find(" is done: "); at != std::string::npos) results.insert(line.substr(at));
    CHECK(results.size() == static_cast<std::size_t>(ranks));
    CHECK(std::set<std::string>(results.begin(), results.end()).size() == (ranks == 0 ? 0 : 1));
    return outcome;
  }

  CommandProcess process;

 private:
  static std::vector<std::string> arguments(std::vector<std::string> options) {
    options.insert(options.begin(), "launch");
    options.insert(options.end(), {"--no-prefix", "--", RINGLET_ELASTIC_EXAMPLE, "1500", "2"});
    return options;
  }
};

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

TEST_CASE("a rank that was killed, rank 0 too, comes back, and the group has its size again") {
  const int victim = GENERATE(0, 1, 2);
  ElasticLaunch launch({"--elastic", "2:3"});
  launch.kill_rank(victim);
  launch.process.wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  const Outcome outcome = launch.finish(3);
  CAPTURE(victim, outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("epoch 1: 2 ranks without rank " + std::to_string(victim) + " of the epoch before, after "));
  CHECK_THAT(outcome.err, Contains("was killed by SIGKILL, and is started again (failure 1 of 3)"));
  CHECK_THAT(outcome.err, Contains("all ranks went on to the end; started again: rank " + std::to_string(victim) + " (once)"));
}

TEST_CASE("a rank that has been started again as often as may be is missed, and the others go on") {
  ElasticLaunch launch({"--elastic", "2:3", "--restarts", "1"});
  launch.kill_rank(1);
  launch.process.wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  // The new process is the last rank of the group.
  launch.process.wait_for_stdout("rank 2 of 3 begins, process ", 2);
  launch.process.wait_for_stdout("\n", 4);
  launch.kill_rank(2);
  launch.process.wait_for_stderr("epoch 3: 2 ranks");
  const Outcome outcome = launch.finish(2);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("is not started again, after 2 failures (--restarts 1)\n"));
  CHECK_THAT(outcome.err, Contains("ranks 0, 2 went on to the end without rank 1 (killed by SIGKILL, started again once)"));
}

TEST_CASE("with fewer ranks than the job needs, it ends as the rank did that is missing") {
  ElasticLaunch launch({"--elastic", "3:3", "--restarts", "0", "--linger", "0"});
  launch.kill_rank(1);
  const Outcome outcome = launch.finish(0);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 128 + SIGKILL);
  CHECK_THAT(outcome.err, Contains("fewer than 3 ranks are left: rank 0 (stopped), rank 1 (killed by SIGKILL), rank 2 (stopped)"));
}

TEST_CASE("with fewer ranks than the job needs nobody trains until the one that is missing is back") {
  ElasticLaunch launch({"--elastic", "3:3"});
  launch.kill_rank(0);
  launch.process.wait_for_stderr("2 of the 3 ranks that the job needs are there; it waits 600 s at most for others to join (--min-wait)");
  const Outcome outcome = launch.finish(3);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  // The step at which one was lost is the one at which another one has come.
  std::smatch lost, joined;
  REQUIRE(std::regex_search(outcome.out, lost, std::regex(R"(step (\d+): 2 of 3 ranks go on)")));
  REQUIRE(std::regex_search(outcome.out, joined, std::regex(R"(step (\d+): 3 ranks go on, 1 of them new)")));
  CHECK(lost[1] == joined[1]);
}

TEST_CASE("a job that has had too few ranks for too long ends, and says who is missing") {
  const bool quiet = GENERATE(false, true);
  // One that stands still before it knocks is neither there nor lost.
  const std::string stands_still = "if [ $RINGLET_RESTARTS = 1 ]; then exec sleep 1000; fi; exec " RINGLET_ELASTIC_EXAMPLE " 100000 2";
  std::vector<std::string> options{"--elastic", "2:2", "--min-wait", "2", "--linger", "0", "--no-prefix"};
  if (quiet) options.push_back("-q");
  CommandProcess process(script_arguments(options, stands_still));
  for (int rank = 0; rank < 2; ++rank) process.wait_for_stdout("rank " + std::to_string(rank) + " of 2 begins, process ");
  process.wait_for_stdout("\n", 2);
  ::kill(pid_of(process.out(), 1, 2), SIGKILL);
  const Outcome outcome = process.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err,
             Contains("fewer than 2 ranks were there for 2 s (--min-wait): rank 0 (stopped), rank 1 (stopped, started again once)\n"));
  CHECK_THAT(outcome.err, quiet ? Catch::Matchers::Matches("[^\n]*\n") : Catch::Matchers::Matches("(.|\n)*it waits 2 s at most(.|\n)*"));
}

TEST_CASE("where all ranks are killed at once, they start anew") {
  ElasticLaunch launch({"--elastic", "2:3"});
  for (int rank = 0; rank < 3; ++rank) launch.kill_rank(rank);
  const Outcome outcome = launch.finish(3);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("starting anew, as a group of 3 ranks: ranks 0, 1, 2"));
  CHECK_THAT(outcome.err, Contains("started again: rank 0 (once), rank 1 (once), rank 2 (once)"));
}

TEST_CASE("`ringlet status` shows the last rank of a group, too, and a signal is what ends a job whose rank had failed") {
  const TemporaryDirectory directory;
  // A rank that is alone, and calls something every few milliseconds, answers nobody (LoopDriver::help), so the steps are slower here.
  CommandProcess process({"launch", "--elastic", "-n", "3", "--no-prefix", "--env", "XDG_RUNTIME_DIR=" + directory.path(), "--",
                          RINGLET_ELASTIC_EXAMPLE, "100000", "50"});
  for (int rank = 0; rank < 3; ++rank) process.wait_for_stdout("rank " + std::to_string(rank) + " of 3 begins, process ");
  process.wait_for_stdout("\n", 3);
  for (const int rank : {1, 2}) ::kill(pid_of(process.out(), rank), SIGKILL);
  process.wait_for_stderr(": 1 rank without ");
  const Outcome shown = run_command({"status"}, {{"XDG_RUNTIME_DIR", directory.path()}});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, Contains(": 1 rank; epoch ") && Contains("2 ranks lost") && !Contains("not answering"));
  process.send(SIGTERM);
  const Outcome outcome = process.finish();
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 128 + SIGTERM);
  CHECK_THAT(outcome.err, Contains("got SIGTERM; stopped rank 0\n"));
}

TEST_CASE("`ringlet status` shows how an elastic group has changed") {
  const TemporaryDirectory directory;
  ElasticLaunch launch({"--elastic", "2:3", "--env", "XDG_RUNTIME_DIR=" + directory.path()});
  launch.kill_rank(0);
  launch.process.wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  const std::string shown = run_command({"status"}, {{"XDG_RUNTIME_DIR", directory.path()}}).out;
  CHECK_THAT(shown, Contains("epoch 2; 1 rank lost and 1 joined") && Contains("the last change: 1 joined, after "));
  launch.finish(3);
}
