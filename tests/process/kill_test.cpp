#include <signal.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Clock = std::chrono::steady_clock;

namespace {

/// Returns the process id that rank `rank` has printed.
pid_t pid_of(const std::string& output, int rank) {
  const std::string mark = "[" + std::to_string(rank) + "] pid ";
  const std::size_t at = output.find(mark);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(output.substr(at + mark.size())));
}

void pass(std::chrono::microseconds time) {
  const timespec wait{0, static_cast<long>(time.count() * 1000)};
  ::nanosleep(&wait, nullptr);
}

}  // namespace

// The moment is random on purpose, so this test waits for time to pass.
TEST_CASE("a rank killed at a random moment is named by every other, and by the launcher") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const int ranks = 4;
  for (int attempt = 0; attempt < 50; ++attempt) {
    CAPTURE(attempt);
    CommandProcess launch({"launch", "-n", std::to_string(ranks), "--linger", "10", "--", RINGLET_COLLECTIVE_LOOP});
    launch.wait_for_stdout("met\n", ranks);
    const int victim = static_cast<int>(random() % ranks);
    pass(std::chrono::microseconds(random() % 30'000));
    const auto killed = Clock::now();
    REQUIRE(::kill(pid_of(launch.out(), victim), SIGKILL) == 0);
    const Outcome outcome = launch.finish();
    CAPTURE(outcome.out, outcome.err);
    CHECK(Clock::now() - killed < std::chrono::seconds(5));
    CHECK(outcome.exit_code == 128 + SIGKILL);
    CHECK(outcome.err.find("rank " + std::to_string(victim)) != std::string::npos);
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != victim)
        CHECK(outcome.out.find("[" + std::to_string(rank) + "] blames " + std::to_string(victim) + ":") != std::string::npos);
  }
}

TEST_CASE("a program may form several groups from one configuration") {
  const Outcome outcome = run_command({"launch", "-n", "3", "--", RINGLET_COLLECTIVE_LOOP, "--twice"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] sum 81", "[1] sum 81", "[2] sum 81"});
}

TEST_CASE("a rank killed while the ranks meet leaves nobody hanging") {
  for (int victim = 0; victim < 3; ++victim) {
    CommandProcess launch({"launch", "-n", "3", "--linger", "0.2", "--", RINGLET_COLLECTIVE_LOOP});
    launch.wait_for_stdout("pid ", 3);
    REQUIRE(::kill(pid_of(launch.out(), victim), SIGKILL) == 0);
    const Outcome outcome = launch.finish();
    CAPTURE(victim, outcome.out, outcome.err);
    CHECK(outcome.exit_code != 0);
  }
}

TEST_CASE("a rank that stands still is named once it has been silent for too long") {
  CommandProcess launch({"launch", "-n", "3", "--linger", "0.5", "--grace", "0.5", "--", RINGLET_COLLECTIVE_LOOP},
                        {{"RINGLET_HEARTBEAT_TIMEOUT_MS", "500"}});
  launch.wait_for_stdout("met\n", 3);
  const pid_t stopped = pid_of(launch.out(), 1);
  REQUIRE(::kill(stopped, SIGSTOP) == 0);
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("[0] blames 1: rank 1 has been silent") != std::string::npos);
  CHECK(outcome.out.find("[2] blames 1: rank 1 has been silent") != std::string::npos);
}
