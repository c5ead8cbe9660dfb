#include <signal.h>

#include "tests/agent/fake_machines.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

TEST_CASE("a rank that was killed came first, whoever was told of first") {
  const int cause = GENERATE(SIGKILL, SIGTERM, SIGSEGV);
  const int told_first = GENERATE(0, SIGABRT, SIGPIPE);
  CAPTURE(cause, told_first);
  FakeRun run(2);
  run.machines[0].on_started = [=](FakeCrew& crew) { crew.end(0, told_first == 0 ? 1 : 0, told_first); };
  run.machines[1].on_started = [=](FakeCrew& crew) {
    crew.later([=, &crew] { crew.later([=, &crew] { crew.later([=, &crew] { crew.end(1, 0, cause); }); }); });
  };
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 128 + cause);
  CHECK_THAT(run.result->message, Contains("rank 1 on m1 (pid 1001) was killed by SIG"));
}

TEST_CASE("of two ranks that may have ended because of another, the one told of first counts") {
  FakeRun run(2);
  run.machines[0].on_started = [](FakeCrew& crew) { crew.end(0, 3); };
  run.machines[1].on_started = [](FakeCrew& crew) {
    crew.later([&crew] { crew.later([&crew] { crew.later([&crew] { crew.end(1, 0, SIGABRT); }); }); });
  };
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 3);
}

TEST_CASE("a rank that says whose loss has ended its group comes after that one, whoever was told of first") {
  const bool aborts = GENERATE(false, true);
  CAPTURE(aborts);
  FakeRun run(3);
  run.machines[0].on_started = [](FakeCrew& crew) { crew.end({0, 3, 0, false, 0, 2}); };
  run.machines[1].on_started = [=](FakeCrew& crew) {
    crew.later([=, &crew] { crew.later([=, &crew] { crew.later([=, &crew] { crew.end(1, 5, aborts ? SIGABRT : 0); }); }); });
  };
  run.machines[2].on_started = [](FakeCrew& crew) { crew.end({2, 0, SIGABRT, false, 0, 2}); };
  run.start();
  run.run_to_end();
  CHECK(run.result->first_failed == 1);
  CHECK(run.result->exit_code == (aborts ? 128 + SIGABRT : 5));
}
