// Tests of what happens where a process may open few descriptors only.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/campaign.hpp"
#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

constexpr int kMost = 40;
// With these alone sh starts.
constexpr int kStandard = 3;

/// Runs `ringlet ARGUMENTS`, whose ranks run under the same limit if `limit` does, and returns how it ended.
Outcome run_limited(int limit, const std::string& arguments) {
  return run_script({"-n", "1", "--no-prefix"}, "ulimit -n " + std::to_string(limit) + "; exec \"$RINGLET\" " + arguments,
                    {{"RINGLET", RINGLET_COMMAND}, {"PROGRAM", RINGLET_PATTERN_RANK}, {"RINGLET_CONNECT_TIMEOUT_MS", "1000"}});
}

void check_sentence(Campaign& campaign, const Outcome& outcome) {
  CAPTURE(outcome.exit_code, outcome.out, outcome.err);
  campaign.begin();
  // Above these a signal has ended it; 126 and 127 say that a program cannot be started.
  const bool ended = outcome.exit_code >= 0 && outcome.exit_code <= 127;
  const bool says_why = outcome.exit_code == 0 || !(outcome.out + outcome.err).empty();
  CHECK(ended);
  CHECK(says_why);
  if (ended && says_why) campaign.goes_well();
}

}  // namespace

TEST_CASE("launch under every limit of descriptors works, or ends with a sentence") {
  Campaign campaign("launch: few descriptors, each number of them");
  bool works = false;
  for (int limit = kStandard + 1; limit <= kStandard + kMost; ++limit) {
    CAPTURE(limit);
    const Outcome outcome = run_limited(limit, "launch -n 2 -- \"$PROGRAM\" x");
    check_sentence(campaign, outcome);
    works = outcome.exit_code == 0;
  }
  CHECK(works);
}

TEST_CASE("a rank under every limit of descriptors joins, or ends with a sentence, and so does its peer") {
  Campaign campaign("a rank: few descriptors, each number of them");
  bool works = false;
  for (int limit = kStandard + 1; limit <= kStandard + kMost; ++limit) {
    CAPTURE(limit);
    const Outcome outcome = run_script({"-n", "2", "--no-prefix", "--linger", "0"},
                                       "[ $RINGLET_RANK = 0 ] || ulimit -n " + std::to_string(limit) + "; exec \"$PROGRAM\" x",
                                       {{"PROGRAM", RINGLET_PATTERN_RANK}, {"RINGLET_CONNECT_TIMEOUT_MS", "1000"}});
    check_sentence(campaign, outcome);
    works = outcome.exit_code == 0;
  }
  CHECK(works);
}

TEST_CASE("an agent under every limit of descriptors comes up, or ends with a sentence") {
  Campaign campaign("up: few descriptors, each number of them");
  for (int limit = kStandard + 1; limit <= kStandard + kMost; ++limit) {
    CAPTURE(limit);
    check_sentence(campaign,
                   run_limited(limit,
                               "up --group descriptors --interface lo --port 0 < /dev/null & up=$!; sleep 0.2; kill -TERM $up; wait $up; "
                               "r=$?; [ $r = 143 ] || exit $r"));
  }
}

TEST_CASE("a page under every limit of descriptors is served, or serve ends with a sentence") {
  Campaign campaign("serve: few descriptors, each number of them");
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/index.html") << "page";
  for (int limit = kStandard + 1; limit <= kStandard + kMost; ++limit) {
    CAPTURE(limit);
    check_sentence(
        campaign,
        run_limited(limit,
                    "serve -n 1 -b 1 -p 0 --host 127.0.0.1 --page " + directory.path() +
                        " -- \"$PROGRAM\" x < /dev/null & up=$!; sleep 0.2; kill -TERM $up; wait $up; r=$?; [ $r = 143 ] || exit $r"));
  }
}
