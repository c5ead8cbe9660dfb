#include <signal.h>

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

TEST_CASE("a signal after the ranks' end leaves out what has not come of their traces, and the machines end well") {
  const int number = GENERATE(SIGINT, SIGTERM);
  TracedRun run;
  run.send(1, 1, {"the start"});
  int dropped = 0;
  for (const std::uint32_t rank : {0u, 1u}) {
    FakeCrew& crew = run.crew(rank);
    crew.on_traces_dropped = [&] {
      ++dropped;
      crew.end_traces();
    };
    crew.end_before_traces(rank);
  }
  run.crew(1).trace({1, 0, " and more"});
  REQUIRE(run.run_until([&] { return run.job->ranks_over(); }) == RunEnd::done);
  run.job->on_signal(number);
  run.run_to_end();
  CHECK(dropped == 2);
  CHECK(run.result->exit_code == 0);
  CHECK(run.result->traces_given_up);
  CHECK(run.result->message == std::string("got ") + (number == SIGINT ? "SIGINT" : "SIGTERM"));
  // A piece that was under way still counts.
  CHECK(run.traces[{1, 0}] == "the start and more");
  for (const FakeMachine& machine : run.machines) CHECK(machine.ended_how.empty());
}

TEST_CASE("a signal ends the wait for the traces of a machine that does not answer") {
  const bool impatient = GENERATE(false, true);
  TracedRun run;
  for (const std::uint32_t rank : {0u, 1u}) run.crew(rank).end_before_traces(rank);
  REQUIRE(run.run_until([&] { return run.job->ranks_over(); }) == RunEnd::done);
  run.crew(0).end_traces();
  // The user is told what holds the job up.
  REQUIRE(run.run_until([&] { return !run.notices.empty(); }) == RunEnd::done);
  CHECK(run.notices.back() == "the ranks have ended, and their traces have not all come from m1 yet; Ctrl-C leaves out the rest");
  CHECK_FALSE(run.result);
  const Instant signalled = run.here.loop().now();
  run.job->on_signal(SIGINT);
  if (impatient) run.job->on_signal(SIGINT);
  run.run_to_end();
  CHECK(run.here.loop().now() - signalled <= (impatient ? Duration::milliseconds(1) : Duration::milliseconds(1100)));
  CHECK(run.result->exit_code == 0);
  CHECK(run.result->traces_given_up);
  CHECK(run.traces.empty());
}

TEST_CASE("a signal before the ranks' end, or without a trace, gives up no traces") {
  TracedRun traced;
  traced.job->on_signal(SIGINT);
  traced.run_to_end();
  CHECK_FALSE(traced.result->traces_given_up);

  FakeRun untraced(2);
  untraced.start();
  REQUIRE(untraced.run_until([&] { return untraced.all_started; }) == RunEnd::done);
  for (const std::uint32_t rank : {0u, 1u}) untraced.machines[rank].crew->end(rank, 0);
  REQUIRE(untraced.run_until([&] { return untraced.job->ranks_over(); }) == RunEnd::done);
  untraced.job->on_signal(SIGINT);
  untraced.run_to_end();
  CHECK_FALSE(untraced.result->traces_given_up);
}
