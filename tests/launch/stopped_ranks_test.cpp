#include "tools/launch/stopped_ranks.hpp"

#include <signal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/sim_network.hpp"

using namespace ringlet;

namespace {

struct Run {
  SimWorld world{1};
  std::vector<std::string> said;
  launch::StoppedRanks stopped{world.add_node().loop(), [this](const std::string& text) { said.push_back(text); }};
};

const job::RankExit kRank{.rank = 2, .pid = 4711};
constexpr Duration kShort = Duration::seconds(1), kLong = Duration::seconds(60);

}  // namespace

TEST_CASE("a rank that stays stopped is told once, and that it goes on") {
  Run run;
  run.stopped.note_stop(kRank, SIGSTOP);
  run.world.run_for(kLong);
  const std::vector<std::string> told{"rank 2 (pid 4711) was stopped by SIGSTOP, and does nothing until: kill -CONT 4711"};
  CHECK(run.said == told);
  run.stopped.note_stop(kRank, SIGSTOP);
  run.world.run_for(kLong);
  CHECK(run.said == told);
  run.stopped.note_continuation(kRank);
  run.stopped.note_continuation(kRank);
  CHECK(run.said == std::vector<std::string>{told[0], "rank 2 (pid 4711) goes on"});
}

TEST_CASE("nothing is said of a rank that goes on, or ends, before long") {
  const bool ends = GENERATE(false, true);
  Run run;
  run.stopped.note_stop(kRank, SIGSTOP);
  run.world.run_for(kShort);
  ends ? run.stopped.forget(kRank) : run.stopped.note_continuation(kRank);
  run.world.run_for(kLong);
  CHECK(run.said.empty());
}

TEST_CASE("of a stopped rank that ends, only its end is told") {
  Run run;
  run.stopped.note_stop(kRank, SIGTSTP);
  run.world.run_for(kLong);
  run.stopped.forget(kRank);
  run.stopped.note_continuation(kRank);
  CHECK(run.said.size() == 1);
}
