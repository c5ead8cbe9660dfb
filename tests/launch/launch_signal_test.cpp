#include <signal.h>

#include <catch2/catch.hpp>
#include <sstream>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("SIGTERM and SIGINT go to all ranks and give 128 plus the signal") {
  const auto [number, name] = GENERATE(table<int, std::string>({{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}}));
  CommandProcess process(script_arguments({"-n", "3"}, "echo ready; exec sleep 1000"));
  process.wait_for_stdout("ready", 3);
  process.send(number);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 128 + number);
  CHECK_THAT(outcome.err, Contains("ringlet launch: got " + name + "; stopped ranks 0, 1, 2\n"));
}

TEST_CASE("ranks that end well after SIGTERM end the launcher well") {
  CommandProcess process(
      script_arguments({"-n", "2"}, "trap 'echo saved; kill $child; exit 0' TERM; sleep 1000 & child=$!; echo ready; wait"));
  process.wait_for_stdout("ready", 2);
  process.send(SIGTERM);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("[0] saved") && Contains("[1] saved"));
}

TEST_CASE("SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded and end nothing by themselves") {
  const auto [number, name] = GENERATE(table<int, std::string>({{SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}}));
  // Each rank's background process is in the rank's process group and must outlive the signal, so it ignores it.
  CommandProcess process(script_arguments({"-n", "2"}, "(trap '' " + name + "; exec sleep 1000) & trap 'echo got " + name + "' " + name +
                                                           "; echo ready; while :; do wait; done"));
  process.wait_for_stdout("ready", 2);
  process.send(number);
  process.wait_for_stdout("got " + name, 2);
  process.send(SIGTERM);
  CHECK(process.finish().exit_code == 128 + SIGTERM);
}

TEST_CASE("a forwarded signal that kills the ranks is their end") {
  CommandProcess process(script_arguments({"-n", "1"}, "echo ready; exec sleep 1000"));
  process.wait_for_stdout("ready");
  process.send(SIGUSR1);
  CHECK(process.finish().exit_code == 128 + SIGUSR1);
}

TEST_CASE("a rank of an elastic job that a forwarded signal kills is not started again") {
  const auto [number, name] = GENERATE(table<int, std::string>({{SIGHUP, "SIGHUP"}, {SIGQUIT, "SIGQUIT"}}));
  // One rank is a shell that outlives its program.
  CommandProcess process(script_arguments(
      {"--elastic", "1:2"},
      "ulimit -c 0; [ $RINGLET_RANK = 0 ] && trap 'exit " + std::to_string(128 + number) + "' HUP QUIT; echo ready; sleep 1000 & wait"));
  process.wait_for_stdout("ready", 2);
  process.send(number);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 128 + number);
  CHECK_THAT(outcome.err, Contains("ringlet launch: got " + name) && !Contains("started again"));
}

TEST_CASE("a second SIGINT kills at once") {
  CommandProcess process(script_arguments({"-n", "2", "--grace", "1000"},
                                          "trap 'echo no' INT; trap '' TERM; sleep 1000 & echo ready; while :; do wait; done"));
  process.wait_for_stdout("ready", 2);
  process.send(SIGINT);
  process.wait_for_stdout("no", 2);
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 128 + SIGINT);
}

TEST_CASE("SIGTERM is followed by SIGKILL after the grace") {
  CommandProcess process(script_arguments({"-n", "2", "--grace", "0.2"}, "trap '' TERM; echo ready; while :; do sleep 1000; done"));
  process.wait_for_stdout("ready", 2);
  process.send(SIGTERM);
  CHECK(process.finish().exit_code == 128 + SIGTERM);
}

TEST_CASE("a stopped rank can be ended") {
  CommandProcess process(script_arguments({"-n", "2", "--grace", "1000"}, "trap 'exit 0' TERM; echo ready; kill -STOP $$; wait"));
  process.wait_for_stdout("ready", 2);
  process.send(SIGTERM);
  process.finish();
}

TEST_CASE("a rank that is stopped is told, and that it goes on") {
  CommandProcess process(script_arguments({"-n", "2"}, "[ $RINGLET_RANK = 0 ] || kill -STOP $$; exec sleep 1000"));
  process.wait_for_stderr("was stopped by SIGSTOP, and does nothing until: kill -CONT ");
  const std::string told = process.err();
  CHECK_THAT(told, Contains("ringlet launch: rank 1 (pid "));
  ::kill(std::stoi(told.substr(told.rfind(' '))), SIGCONT);
  process.wait_for_stderr(") goes on\n");
  process.send(SIGTERM);
  CHECK(process.finish().exit_code == 128 + SIGTERM);
}

TEST_CASE("a launcher killed by SIGKILL leaves no process") {
  const std::string script = GENERATE("echo ready; exec sleep 1000", "(sleep 1000 & sleep 1000) & echo ready; wait",
                                      "trap '' TERM HUP INT; sleep 1000 & echo ready; while :; do wait; done");
  CommandProcess process(script_arguments({"-n", "3"}, script));
  process.wait_for_stdout("ready", 3);
  process.send(SIGKILL);
  // `finish` waits for the end of the lifeline, which every process of the run holds.
  CHECK(process.finish().exit_code == -SIGKILL);
}

TEST_CASE("a launcher killed while it starts its ranks leaves no process") {
  for (int round = 0; round < 20; ++round) {
    CommandProcess process(script_arguments({"-n", "8"}, "sleep 1000 & echo ready; wait"));
    process.wait_for_stdout("ready", 1 + round % 4);
    process.send(SIGKILL);
    CHECK(process.finish().exit_code == -SIGKILL);
  }
}

TEST_CASE("the loss of the guard is told, and the run goes on") {
  CommandProcess process(script_arguments({"-n", "1", "--stdin", "0"}, "echo ready; read x; echo went on"));
  process.wait_for_stdout("ready");
  const std::string self = std::to_string(process.pid());
  std::istringstream children(read_file("/proc/" + self + "/task/" + self + "/children"));
  for (pid_t child = 0; children >> child;)
    if (read_file("/proc/" + std::to_string(child) + "/cmdline").find("internal-guard") != std::string::npos) ::kill(child, SIGKILL);
  process.wait_for_stderr("the guard process was ended");
  process.write_stdin("\n");
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("went on"));
}

TEST_CASE("a signal while the output waits for its reader drops the output") {
  CommandProcess process({"launch", "-n", "1", "--", RINGLET_RANK_PROGRAM, "flood", "900000"});
  process.wait_for_stderr("done");
  process.send(SIGTERM);
  process.send(SIGTERM);
  process.finish();
}
