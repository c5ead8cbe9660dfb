#include <map>
#include <string>

#include "tests/agent/fake_machines.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// Rank 0 and 1, on a machine each, whose traces are wanted.
struct TracedRun : FakeRun {
  TracedRun() : FakeRun(2) {
    options.start.trace = true;
    start();
    REQUIRE(run_until([&] { return all_started; }) == RunEnd::done);
  }
  FakeCrew& crew(std::size_t machine) { return *machines[machine].crew; }
  /// Sends the pieces of a trace as a crew does, one after the other.
  void send(std::size_t machine, std::uint32_t rank, const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces) {
      const int taken = crew(machine).traces_taken;
      crew(machine).trace({rank, 0, piece});
      REQUIRE(run_until([&] { return crew(machine).traces_taken == taken + 1; }) == RunEnd::done);
    }
  }
};

}  // namespace

TEST_CASE("traces come whole from each machine, a piece at a time") {
  TracedRun run;
  CHECK(run.crew(0).started->trace);
  const std::string large(job::kMaxTracePieceBytes, 'x');
  run.send(1, 1, {large, "the rest", ""});
  run.send(0, 0, {"of rank 0", ""});
  for (const std::uint32_t rank : {0u, 1u}) run.crew(rank).end(rank, 0);
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
  CHECK(run.traces[{0, 0}] == "of rank 0");
  CHECK(run.traces[{1, 0}] == large + "the rest");
}

TEST_CASE("a trace of a rank that is another machine's, of a process that was never started, or that nobody wants, breaks the protocol") {
  const auto ends_with = [](FakeRun& run) {
    run.run_to_end();
    CHECK_THAT(run.result->message, Contains("lost m1") && Contains("it sent a trace of a process that is not its"));
  };
  for (const job::TracePiece& wrong : {job::TracePiece{0, 0, "x"}, job::TracePiece{1, 1, "x"}, job::TracePiece{2, 0, "x"}}) {
    CAPTURE(wrong.rank, wrong.restarts);
    TracedRun run;
    run.crew(1).trace(wrong);
    ends_with(run);
    CHECK(run.traces.empty());
  }
  FakeRun untraced(2);
  untraced.machines[1].on_started = [](FakeCrew& crew) { crew.trace({1, 0, "x"}); };
  untraced.start();
  ends_with(untraced);
}

TEST_CASE("where nobody is left to take a trace, its machine forgets it") {
  TracedRun run;
  FakeMachine& machine = run.machines[0];
  bool dropped = false;
  machine.crew->later([&] {
    machine.crew->trace({0, 0, "x"});
    run.job.reset();
  });
  REQUIRE(run.run_until([&] {
    dropped = dropped || (machine.crew != nullptr && machine.crew->traces_dropped);
    return machine.session == nullptr;
  }) == RunEnd::done);
  CHECK(dropped);
}
