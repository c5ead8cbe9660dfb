#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/launch/command_process.hpp"
#include "tests/pass.hpp"

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

}  // namespace

// The moment is random on purpose, so this test waits for time to pass.
TEST_CASE("a rank killed at a random moment is named by every other, and by the launcher") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const int ranks = 4;
  Campaign campaign("a rank is killed at any moment");
  for (std::uint64_t attempt = 0; attempt < share_of(50); ++attempt) {
    CAPTURE(attempt);
    campaign.begin();
    CommandProcess launch({"launch", "-n", std::to_string(ranks), "--linger", "10", "--", RINGLET_COLLECTIVE_LOOP});
    launch.wait_for_stdout("met\n", ranks);
    const int victim = static_cast<int>(random() % ranks);
    pass(std::chrono::microseconds(random() % 30'000));
    const auto killed = Clock::now();
    REQUIRE(::kill(pid_of(launch.out(), victim), SIGKILL) == 0);
    const Outcome outcome = launch.finish();
    CAPTURE(outcome.out, outcome.err);
    bool named = outcome.exit_code == 128 + SIGKILL && outcome.err.find("rank " + std::to_string(victim)) != std::string::npos;
    for (int rank = 0; rank < ranks; ++rank)
      named &=
          rank == victim || outcome.out.find("[" + std::to_string(rank) + "] blames " + std::to_string(victim) + ":") != std::string::npos;
    CHECK(named);
    const bool in_time = Clock::now() - killed < std::chrono::seconds(5);
    CHECK(in_time);
    if (named && in_time) campaign.goes_well_since(killed);
  }
}

TEST_CASE("a rank that leaves comes before those that fail because of it, though it ends after them") {
  CommandProcess launch({"launch", "-n", "3", "--stdin", "1", "--linger", "1000", "--", "sh", "-c",
                         R"(if [ $RINGLET_RANK = 1 ]; then "$0" --rounds 3; read x; exit 3; fi; exec "$0")", RINGLET_COLLECTIVE_LOOP});
  launch.wait_for_stdout("blames 1", 2);
  for (const int rank : {0, 2}) wait_for_death(pid_of(launch.out(), rank));
  launch.write_stdin("\n");
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.err.find("exited with code 3; after it failed ranks 0, 2") != std::string::npos);
}

TEST_CASE("a program may form several groups from one configuration") {
  const Outcome outcome = run_command({"launch", "-n", "3", "--", RINGLET_COLLECTIVE_LOOP, "--twice"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0] sum 81", "[1] sum 81", "[2] sum 81"});
}

TEST_CASE("a rank killed while the ranks meet leaves nobody hanging") {
  std::mt19937 random(std::random_device{}());
  Campaign campaign("a rank is killed while the ranks meet");
  for (std::uint64_t attempt = 0; attempt < share_of(12); ++attempt) {
    const int victim = static_cast<int>(attempt % 3);
    campaign.begin();
    CommandProcess launch({"launch", "-n", "3", "--linger", "0.2", "--", RINGLET_COLLECTIVE_LOOP});
    launch.wait_for_stdout("pid ", 3);
    if (attempt >= 3) pass(std::chrono::microseconds(random() % 10'000));
    const auto killed = Clock::now();
    REQUIRE(::kill(pid_of(launch.out(), victim), SIGKILL) == 0);
    const Outcome outcome = launch.finish();
    CAPTURE(victim, outcome.out, outcome.err);
    CHECK(outcome.exit_code != 0);
    if (outcome.exit_code != 0) campaign.goes_well_since(killed);
  }
}

TEST_CASE("a rank that stands still is named once it has been silent for too long") {
  Campaign campaign("a rank is stopped, with a limit of 0.5 s");
  for (std::uint64_t attempt = 0; attempt < share_of(3); ++attempt) {
    campaign.begin();
    CommandProcess launch({"launch", "-n", "3", "--linger", "0.5", "--grace", "0.5", "--", RINGLET_COLLECTIVE_LOOP},
                          {{"RINGLET_HEARTBEAT_TIMEOUT_MS", "500"}});
    launch.wait_for_stdout("met\n", 3);
    const int victim = static_cast<int>((attempt + 1) % 3);
    const auto stopped = Clock::now();
    REQUIRE(::kill(pid_of(launch.out(), victim), SIGSTOP) == 0);
    const Outcome outcome = launch.finish();
    CAPTURE(outcome.out, outcome.err);
    bool named = outcome.exit_code == 1;
    for (int rank = 0; rank < 3; ++rank) {
      const std::string name = std::to_string(victim), words = "] blames " + name + ": rank " + name + " has been silent";
      named &= rank == victim || outcome.out.find("[" + std::to_string(rank) + words) != std::string::npos;
    }
    CHECK(named);
    if (named) campaign.goes_well_since(stopped);
  }
}
