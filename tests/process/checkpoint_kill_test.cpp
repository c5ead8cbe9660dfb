#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/campaign.hpp"
#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
namespace fs = std::filesystem;

namespace {

// These are values of native::SaveMoment.
constexpr int kMoments = 8;
constexpr int kManifestWritten = 3;  // up to here no rank has renamed its directory
constexpr int kSetAside = 4;
constexpr int kRenamed = 5;
constexpr int kAgreed = 6;  // from here on all ranks have

Outcome run(std::vector<std::string> arguments, int ranks = 3) {
  std::vector<std::string> all{"launch", "-n", std::to_string(ranks), "--linger", "5", "--", RINGLET_CHECKPOINT_RANKS};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_command(all);
}

Outcome save(const std::string& directory, int step, int moment = -1, int victim = -1) {
  return run({"save", directory, std::to_string(step), std::to_string(moment), std::to_string(victim)});
}

}  // namespace

TEST_CASE("a process killed at any moment of a save leaves a whole checkpoint: the new one or the one before") {
  const int moment = GENERATE(range(0, kMoments));
  const int victim = GENERATE(0, 1);
  const bool shared = GENERATE(false, true);
  CAPTURE(moment, victim, shared);
  Campaign campaign("a process is killed at each moment of a save");
  const TemporaryDirectory scratch;
  if (shared) {
    fs::create_directory(scratch.path() + "/0");
    for (const char* rank : {"/1", "/2"}) fs::create_directory_symlink("0", scratch.path() + rank);
  }
  REQUIRE(save(scratch.path(), 1).exit_code == 0);
  // The step is saved twice, so that the second save finds what the first has left; then one replaces a step that is there.
  for (const int step : {2, 2, 1}) {
    campaign.begin();
    const Outcome killed = save(scratch.path(), step, moment, victim);
    CAPTURE(step, killed.out, killed.err);
    const bool reached = killed.exit_code == 128 + SIGKILL;
    // Nothing is set aside for a new step, and only a directory's first rank renames; everything else happens on every rank.
    const bool must_reach = step == 2 && moment != kSetAside && !(shared && victim == 1 && moment == kRenamed);
    if (must_reach) CHECK(reached);
    const Outcome loaded = run({"load", scratch.path()});
    CAPTURE(loaded.out, loaded.err);
    CHECK(loaded.exit_code == 0);
    if (loaded.exit_code == 0) campaign.goes_well();
    if (reached && moment <= kManifestWritten && step == 2) CHECK(loaded.out.find("[0] step 1\n") != std::string::npos);
    if (moment >= kAgreed && step == 2) CHECK(loaded.out.find("[0] step 2\n") != std::string::npos);
  }
  REQUIRE(save(scratch.path(), 3).exit_code == 0);
  const Outcome loaded = run({"load", scratch.path()});
  CHECK(loaded.out.find("[2] step 3\n") != std::string::npos);
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const auto count = std::distance(fs::directory_iterator(scratch.path() + "/" + std::to_string(rank)), fs::directory_iterator());
    CHECK(count == 1);
  }
}
