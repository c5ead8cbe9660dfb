#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;

namespace {

/// Runs two ranks. Rank 0 exits with 5; once it is dead, rank 1 runs `script`.
Outcome after_rank_0_failed(const std::string& script) {
  CommandProcess process(script_arguments({"-n", "2", "--stdin", "1", "--linger", "1000"},
                                          "if [ $RINGLET_RANK = 0 ]; then echo leaving $$ .; exit 5; fi; read x; " + script));
  process.wait_for_stdout(" .\n");
  std::smatch leaving;
  REQUIRE(std::regex_search(process.out(), leaving, std::regex(R"(leaving (\d+))")));
  wait_for_death(std::stoi(leaving[1]));
  process.write_stdin("go\n");
  return process.finish();
}

}  // namespace

TEST_CASE("all ranks well: exit code 0 and not a word") {
  const Outcome outcome = run_script({"-n", "4"}, "exit 0");
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.empty());
}

TEST_CASE("the failing rank's code is the launcher's, and the rank is named") {
  const Outcome outcome = run_script({"-n", "4", "--linger", "0"}, "if [ $RINGLET_RANK = 2 ]; then exit 3; fi; exec sleep 1000");
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Matches(R"(ringlet launch: rank 2 \(pid \d+\) exited with code 3; stopped ranks 0, 1, 3\n)"));
}

TEST_CASE("--elastic lets the others go on, and says at the end who is missing") {
  const std::string script = "[ $RINGLET_ELASTIC = on ] || exit 9; if [ $RINGLET_RANK = 1 ]; then kill -KILL $$; fi; sleep 0.3; echo done";
  const Outcome outcome = run_script({"-n", "3", "--elastic", "--linger", "0"}, script);
  CHECK(outcome.exit_code == 0);
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] done", "[2] done"});
  CHECK(outcome.err == "ringlet launch: ranks 0, 2 went on to the end without rank 1 (killed by SIGKILL)\n");
}

TEST_CASE("an elastic job of which no rank ends well has failed as its first rank did") {
  const Outcome outcome = run_script({"-n", "3", "--elastic"}, "sleep 0.$RINGLET_RANK; exit $((RINGLET_RANK + 3))");
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("rank 0 (pid ") && Contains("exited with code 3"));
}

TEST_CASE("a program that cannot go on without a lost rank is started anew on all ranks, a limited number of times") {
  const std::string waits = "if [ $RINGLET_RANK = 1 ]; then exit 7; fi; exec sleep 1000";
  const Outcome well = run_script({"--elastic", "2:3"}, "if [ $RINGLET_RESTARTS = 0 ]; then " + waits +
                                                            "; fi; echo $RINGLET_RANK of $RINGLET_WORLD_SIZE, restart $RINGLET_RESTARTS");
  CHECK(well.exit_code == 0);
  CHECK(sorted_lines(well.out) == std::vector<std::string>{"[0] 0 of 3, restart 1", "[1] 1 of 3, restart 1", "[2] 2 of 3, restart 1"});
  CHECK_THAT(well.err, Contains("exited with code 7, and is started again (failure 1 of 3)"));
  CHECK_THAT(well.err, Contains("all ranks went on to the end; started again: rank 0 (once), rank 1 (once), rank 2 (once)\n"));

  const Outcome fails = run_script({"--elastic", "3:3", "--restarts", "1", "--linger", "0", "--json"}, waits);
  CHECK(fails.exit_code == 7);
  CHECK_THAT(
      fails.err,
      Contains("fewer than 3 ranks are left: rank 0 (stopped, started again once), rank 1 (exited with code 7, started again once)"));
  CHECK_THAT(fails.out, Contains("\"restarts\":1"));
}

TEST_CASE("a rank that is given up is missed by those that start anew without it") {
  const Outcome outcome = run_script({"--elastic", "2:3", "--restarts", "1"},
                                     "if [ $RINGLET_WORLD_SIZE = 2 ]; then echo two, $RANK $LOCAL_RANK of $LOCAL_WORLD_SIZE; exit 0; fi; "
                                     "if [ $RINGLET_RANK = 1 ]; then exit 7; fi; "
                                     "exec sleep 1000");
  CHECK(outcome.exit_code == 0);
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] two, 0 0 of 2", "[2] two, 1 1 of 2"});
  CHECK_THAT(outcome.err, Contains("ranks 0, 2 went on to the end without rank 1 (exited with code 7, started again once)"));
}

#ifdef __linux__
TEST_CASE("what leaves its rank's process group leaves no zombie") {
  // The rank looks for children of its parent, the launcher.
  const Outcome outcome = run_script({"-n", "1"},
                                     "for i in 1 2 3 4 5; do (setsid sleep 0.1 &); done; "
                                     "for i in $(seq 200); do sleep 0.05; "
                                     "left=$(cat /proc/[0-9]*/stat 2>/dev/null | grep '(sleep) [SZ] '$PPID' ' | wc -l); "
                                     "[ $i -lt 20 ] || [ $left != 0 ] || exit 0; done; echo $left zombies; exit 1");
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "");
}
#endif

TEST_CASE("SIGTERM ends a job whose ranks wait to be started again") {
  CommandProcess process(script_arguments({"--elastic", "1:2"}, "exit 3"));
  process.wait_for_stderr("is started again");
  process.send(SIGTERM);
  CHECK(process.finish().exit_code == 128 + SIGTERM);
}

TEST_CASE("a rank killed by a signal gives 128 plus the signal") {
  const Outcome outcome = run_script({"-n", "2", "--linger", "0"}, "if [ $RINGLET_RANK = 1 ]; then kill -SEGV $$; fi; exec sleep 1000");
  CHECK(outcome.exit_code == 128 + SIGSEGV);
  CHECK_THAT(outcome.err, Contains("rank 1 (pid ") && Contains(") was killed by SIGSEGV; stopped rank 0\n"));
}

TEST_CASE("--quiet leaves the closing line out") {
  const Outcome outcome = run_script({"-n", "2", "--quiet"}, "echo said >&2; exit 4");
  CHECK(outcome.exit_code == 4);
  CHECK(sorted_lines(outcome.err) == std::vector<std::string>{"[0] said", "[1] said"});
}

TEST_CASE("a rank that exits with 0 early stops nothing") {
  CommandProcess process(
      script_arguments({"-n", "2", "--stdin", "1"}, "if [ $RINGLET_RANK = 0 ]; then echo early; exit 0; fi; read x; echo $x"));
  process.wait_for_stdout("[0] early");
  process.write_stdin("late\n");
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("[1] late"));
}

TEST_CASE("the other ranks have time to say what they saw") {
  const Outcome outcome = after_rank_0_failed("echo lost a peer; exit 1");
  CHECK(outcome.exit_code == 5);
  CHECK_THAT(outcome.out, Contains("[1] lost a peer"));
  CHECK_THAT(outcome.err, Contains("exited with code 5; after it failed rank 1\n"));
}

TEST_CASE("a rank killed from outside came first, though a peer's exit was seen before its death") {
  const Outcome outcome = after_rank_0_failed("kill -KILL $$");
  CHECK(outcome.exit_code == 128 + SIGKILL);
  CHECK_THAT(outcome.err, Contains("rank 1 (pid ") && Contains("was killed by SIGKILL; after it failed rank 0"));
}

TEST_CASE("a rank that ignores SIGTERM is killed after the grace") {
  CommandProcess process(
      script_arguments({"-n", "2", "--stdin", "0", "--linger", "0", "--grace", "0.2", "--json"},
                       "trap '' TERM; echo ready; if [ $RINGLET_RANK = 0 ]; then read x; exit 9; fi; while :; do sleep 1000; done"));
  process.wait_for_stderr("[0] ready");
  process.wait_for_stderr("[1] ready");
  process.write_stdin("\n");
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 9);
  CHECK_THAT(outcome.out, Contains(R"("signal":9)"));
}

TEST_CASE("what a rank started ends with it") {
  // The run's lifeline does not end while one of these processes lives.
  SECTION("when another rank fails") {
    CommandProcess process(
        script_arguments({"-n", "2", "--stdin", "0", "--linger", "0"},
                         "if [ $RINGLET_RANK = 0 ]; then read x; exit 6; fi; (sleep 1000 & sleep 1000) & echo ready; wait"));
    process.wait_for_stdout("ready");
    process.write_stdin("\n");
    CHECK(process.finish().exit_code == 6);
  }
  SECTION("when the rank itself exits with 0") { CHECK(run_script({"-n", "2"}, "sleep 1000 & exit 0").exit_code == 0); }
  SECTION("when it ignores SIGTERM") {
    CHECK(run_script({"-n", "1", "--grace", "0.1"}, "(trap '' TERM; while :; do sleep 1000; done) & exit 0").exit_code == 0);
  }
}

TEST_CASE("the environment says who a rank is and where the group meets") {
  const Outcome outcome =
      run_script({"-n", "2", "--env", "ADDED=a=b", "--env", "ADDED=c", "--cwd", "/"},
                 "echo $RINGLET_RANK of $RINGLET_WORLD_SIZE at $RINGLET_COORDINATOR fd ${RINGLET_COORDINATOR_FD:-none};"
                 "echo mlx ${MLX_RANK:-none} ${MLX_HOSTFILE:-none} ${RINGLET_HOSTFILE:-none}; echo $ADDED $KEPT in $PWD",
                 {{"MLX_RANK", "7"},
                  {"MLX_HOSTFILE", "hosts"},
                  {"RINGLET_HOSTFILE", "hosts"},
                  {"RINGLET_RANK", "9"},
                  {"RINGLET_COORDINATOR_FD", "99"},
                  {"KEPT", "kept"}});
  const auto lines = sorted_lines(outcome.out);
  REQUIRE(lines.size() == 6);
  CHECK_THAT(lines[0], Matches(R"(\[0\] 0 of 2 at 127\.0\.0\.1:\d+ fd \d+)"));
  CHECK(lines[1] == "[0] c kept in /");
  CHECK(lines[2] == "[0] mlx none none none");
  CHECK_THAT(lines[3], Matches(R"(\[1\] 1 of 2 at 127\.0\.0\.1:\d+ fd none)"));
}

TEST_CASE("several ranks of one machine share its cores for OpenMP's threads, unless it is said how many each takes") {
  ::unsetenv("OMP_NUM_THREADS");
  const auto threads_of = [](std::vector<std::string> options, const char* set) {
    return run_script(std::move(options), "echo ${OMP_NUM_THREADS:-none}", {{"OMP_NUM_THREADS", set}}).out;
  };
  const Outcome many = run_script({"-n", "100", "--no-prefix"}, "echo ${OMP_NUM_THREADS:-none}");
  const auto lines = sorted_lines(many.out);
  REQUIRE(lines.size() == 100);
  CHECK((lines.front() == "1" && lines.back() == "1"));
  CHECK(run_script({"-n", "1"}, "echo ${OMP_NUM_THREADS:-none}").out == "[0] none\n");
  CHECK(threads_of({"-n", "2", "--no-prefix"}, "7") == "7\n7\n");
  CHECK(threads_of({"-n", "2", "--no-prefix", "--env", "OMP_NUM_THREADS=5"}, "7") == "5\n5\n");
}

TEST_CASE("the environment says to torch who a rank is and where its store may be") {
  const Outcome outcome = run_script({"-n", "2"},
                                     "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here, $MASTER_ADDR;"
                                     "echo ${RINGLET_COORDINATOR##*:} and $MASTER_PORT",
                                     {{"RANK", "7"}, {"WORLD_SIZE", "9"}, {"MASTER_PORT", "1"}, {"LOCAL_WORLD_SIZE", "9"}});
  const auto lines = sorted_lines(outcome.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "[0] 0 of 2, 0 of 2 here, 127.0.0.1");
  CHECK(lines[2] == "[1] 1 of 2, 1 of 2 here, 127.0.0.1");
  int coordinator = 0, store = 0;
  REQUIRE(std::sscanf(lines[1].c_str(), "[0] %d and %d", &coordinator, &store) == 2);
  CHECK(std::abs(store - coordinator) == 1);
  CHECK(lines[3].substr(4) == lines[1].substr(4));
  const Outcome refused = run_script({"-n", "1", "--env", "WORLD_SIZE=3"}, ":");
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains("WORLD_SIZE=3"));
}

TEST_CASE("rank 0 inherits the socket at which the others call") {
  const Outcome outcome = run_command({"launch", "-n", "2", "--", RINGLET_RANK_PROGRAM, "adopt"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "[0] accepted y\n");
}

TEST_CASE("a rank has its own two pipes and its socket, and none of another's or of the launcher's") {
  CommandProcess process(script_arguments({"-n", "4"}, "ls -l /proc/$$/fd; echo listed; exec sleep 1000"));
  process.wait_for_stdout("listed", 4);
  std::map<std::string, std::set<std::string>> holders;  // "pipe:[123]" -> prefixes of the ranks that hold it
  std::istringstream lines(process.out());
  for (std::string line; std::getline(lines, line);)
    for (const char* kind : {"pipe:", "socket:"})
      if (const std::size_t at = line.find(kind); at != std::string::npos) holders[line.substr(at)].insert(line.substr(0, 3));

  // Descriptors that all ranks have came from this test's own process, through the launcher.
  std::set<std::string> here;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    here.insert(std::filesystem::read_symlink(entry.path(), closed_meanwhile));
  }
  std::map<std::string, int> own;
  for (const auto& [name, ranks] : holders) {
    CAPTURE(name, ranks);
    CHECK((ranks.size() == 1 || here.count(name) == 1));
    if (ranks.size() == 1) ++own[*ranks.begin()];
  }
  // Rank 0 also has the socket on which it listens for the other ranks.
  CHECK(own == std::map<std::string, int>{{"[0]", 4}, {"[1]", 3}, {"[2]", 3}, {"[3]", 3}});
  process.send(SIGTERM);
  process.finish();
}
