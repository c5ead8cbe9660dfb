#include <signal.h>

#include "sim/sim_random.hpp"
#include "tests/agent/fake_machines.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/sim/byte_user.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

void end_well(FakeCrew& crew) {
  for (const std::uint32_t rank : std::set<std::uint32_t>(crew.running)) {
    crew.print(rank, "sum of " + std::to_string(rank) + "\n");
    crew.end(rank, 0);
  }
}

}  // namespace

TEST_CASE("a job runs on all machines, in their order, and ends well") {
  FakeRun run(3);
  run.options.wish = {std::nullopt, 2};
  run.options.start.arguments = {"--epochs", "3"};
  run.options.start.environment = {{"COLOUR", "red"}};
  for (FakeMachine& machine : run.machines) machine.on_started = end_well;
  std::vector<job::StartRanks> starts(3);
  for (std::size_t i = 0; i < 3; ++i)
    run.machines[i].on_started = [&starts, i](FakeCrew& crew) {
      starts[i] = *crew.started;
      CHECK(crew.meeting_host == (i == 0 ? "0.0.0.0" : ""));
      end_well(crew);
    };
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
  CHECK(run.result->error.empty());
  CHECK(run.result->message.empty());
  CHECK(run.all_started);
  REQUIRE(run.result->ranks.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(run.machines[i].hailed == job::Hail{job::kProtocol, "1.2.3", "home", "desk", "/opt/m" + std::to_string(i), ""});
    CHECK(starts[i].first_rank == 2 * i);
    CHECK(starts[i].ranks == 2);
    CHECK(starts[i].world_size == 6);
    CHECK(starts[i].coordinator == run.machines[0].node.host() + ":4711");
    CHECK(starts[i].token == "token-of-the-job");
    CHECK(starts[i].arguments == run.options.start.arguments);
    CHECK(starts[i].environment == run.options.start.environment);
    CHECK(run.output[i] == "sum of " + std::to_string(2 * i) + "\nsum of " + std::to_string(2 * i + 1) + "\n");
    CHECK(run.result->ranks[2 * i].machine == "m" + std::to_string(i));
    CHECK(run.result->ranks[2 * i].pid == 1000 + 2 * static_cast<int>(i));
  }
  run.job.reset();
  CHECK(run.run_until([&] { return run.machines[0].session == nullptr && run.machines[2].session == nullptr; }) == RunEnd::done);
  CHECK(run.machines[1].jobs_ended == 1);
  CHECK(run.machines[1].ended_how.empty());
}

TEST_CASE("one machine alone meets on its loopback") {
  FakeRun run(1);
  run.options.wish = {3, 1};
  run.machines[0].on_started = [](FakeCrew& crew) {
    CHECK(crew.meeting_host == "127.0.0.1");
    CHECK(crew.started->coordinator == "127.0.0.1:4711");
    CHECK(crew.started->ranks == 3);
    end_well(crew);
  };
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("the first failure ends all others and gives the exit code") {
  FakeRun run(3);
  run.machines[1].on_started = [](FakeCrew& crew) { crew.end(1, 7); };
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 7);
  CHECK(run.result->first_failed == 1);
  CHECK(run.result->message == "rank 1 on m1 (pid 1001) exited with code 7; stopped ranks 0, 2");
  CHECK(run.result->ranks[0].signal == SIGTERM);
  CHECK(run.result->ranks[0].stopped);
}

TEST_CASE("a machine whose owner ends it tells its job so, and hands on how its ranks ended") {
  FakeRun run(2);
  run.machines[1].on_started = [&](FakeCrew&) { run.machines[1].session->end("its owner ended it"); };
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 1);
  CHECK(run.result->error == "m1: its owner ended it");
  REQUIRE(run.result->ranks.size() == 2);
  CHECK_FALSE(run.result->ranks[1].lost);
  CHECK(run.result->ranks[1].signal == SIGTERM);
  CHECK(run.run_until([&] { return run.machines[1].session == nullptr; }) == RunEnd::done);
  CHECK(run.machines[1].ended_how == "its owner ended it");
}

TEST_CASE("a machine that refuses is left out, unless it was named or none is left") {
  FakeRun run(2);
  for (FakeMachine& machine : run.machines) machine.on_started = end_well;
  run.machines[0].refusal = "/opt/m0 is not allowed";
  SECTION("left out") {
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 0);
    REQUIRE(run.notices.size() == 1);
    CHECK(run.notices[0] == "the job goes on without some machines; m0: /opt/m0 is not allowed");
    REQUIRE(run.result->ranks.size() == 1);
    CHECK(run.result->ranks[0].machine == "m1");
  }
  SECTION("named") {
    run.options.every_machine = true;
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 126);
    CHECK(run.result->error == "m0: /opt/m0 is not allowed");
  }
  SECTION("too few") {
    run.options.at_least = 2;
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 126);
    CHECK(run.result->error == "1 of at least 2 machines would run it: m0: /opt/m0 is not allowed");
  }
  SECTION("none") {
    run.machines[1].refusal = "/opt/m1 is not, either";
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 126);
    CHECK(run.result->error == "m0: /opt/m0 is not allowed\n  m1: /opt/m1 is not, either");
    CHECK(run.machines[0].jobs_started == 0);
  }
}

TEST_CASE("a machine that is only a name, and silent, delays a job by little") {
  FakeRun run(3);
  for (FakeMachine& machine : run.machines) machine.on_started = end_well;
  run.machines[2].silent = true;
  run.options.straggler_time = Duration::milliseconds(1'500);
  const Instant begin = run.here.loop().now();
  const auto seconds = [&] { return static_cast<double>((run.here.loop().now() - begin).whole_milliseconds()) / 1000; };
  SECTION("left out") {
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 0);
    CHECK(run.notices == std::vector<std::string>{"the job goes on without some machines; m2 did not answer 1.5 s after the others had"});
    CHECK(run.result->ranks.size() == 2);
    CHECK(seconds() < 2);
  }
  SECTION("named, or needed") {
    const bool named = GENERATE(true, false);
    run.options.every_machine = named;
    if (!named) run.options.wish = {9, 1};
    run.start();
    run.run_to_end();
    CHECK(run.result->exit_code == 1);
    CHECK(seconds() > 9);
  }
  SECTION("nobody else would") {
    run.machines[0].refusal = run.machines[1].refusal = "no";
    run.start();
    run.run_to_end();
    CHECK(seconds() > 9);
  }
}

TEST_CASE("another version of the protocol is told with both versions") {
  FakeRun run(1);
  run.machines[0].protocol = 7;
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 1);
  CHECK_THAT(run.result->error, Contains("m0: its `ringlet` 9.9.9 speaks version"));
}

TEST_CASE("ranks that do not fit are refused before anything starts") {
  FakeRun run(2);
  run.options.wish = {9, 1};
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 1);
  CHECK_THAT(run.result->error, Contains("9 ranks do not fit: of free ranks m0 has 4, m1 has 4"));
  CHECK(run.machines[0].crew == nullptr);
}

TEST_CASE("where ranks do not fit, machines that take no part are told with their reason") {
  FakeRun run(3);
  run.options.wish = {9, 1};
  run.machines[1].refusal = "not today";
  run.start();
  run.run_to_end();
  CHECK_THAT(run.result->error, Contains("9 ranks do not fit: of free ranks m0 has 4, m2 has 4") && Contains("without\n  m1: not today"));
}

TEST_CASE("what an agent cannot start ends the job") {
  FakeRun run(3);
  run.machines[2].failure = job::Failed{127, "cannot run it"};
  run.start();
  run.run_to_end();
  CHECK(run.result->exit_code == 127);
  CHECK(run.result->error == "m2: cannot run it");
  CHECK(run.result->ranks[0].signal == SIGTERM);
}

TEST_CASE("SIGINT ends the job, a second one at once; other signals are passed on") {
  FakeRun run(2);
  run.start();
  REQUIRE(run.run_until([&] { return run.all_started; }) == RunEnd::done);
  run.job->on_signal(SIGUSR1);
  run.world.run_for(Duration::milliseconds(100));
  run.job->on_signal(SIGINT);
  run.job->on_signal(SIGINT);
  FakeCrew& crew = *run.machines[0].crew;
  std::vector<int> signals;
  std::vector<Duration> graces;
  crew.on_gone = [&] {
    signals = crew.signals;
    graces = crew.graces;
    run.machines[0].crew = nullptr;
  };
  run.run_to_end();
  run.job.reset();
  REQUIRE(run.run_until([&] { return !run.machines[0].session; }) == RunEnd::done);
  CHECK(run.result->exit_code == 128 + SIGINT);
  CHECK(run.result->message == "got SIGINT; stopped ranks 0, 1");
  REQUIRE(signals.size() >= 3);
  CHECK(std::vector<int>(signals.begin(), signals.begin() + 3) == std::vector<int>{SIGUSR1, SIGINT, SIGINT});
  CHECK(graces[1] == Duration{});
}

TEST_CASE("output that nobody takes holds the ranks, and their end is heard all the same") {
  FakeRun run(1);
  run.takes_output = false;
  run.start();
  REQUIRE(run.run_until([&] { return run.all_started; }) == RunEnd::done);
  FakeCrew& crew = *run.machines[0].crew;
  const std::string block(64 * 1024, 'x');
  std::size_t printed = 0;
  while (!crew.held) {
    crew.print(0, block);
    printed += block.size();
  }
  CHECK(printed == job::kOutputWindowBytes);
  REQUIRE(run.run_until([&] { return run.output[0].size() == printed; }) == RunEnd::done);
  CHECK(crew.held);
  run.job->take_output(0, false, block.size());
  REQUIRE(run.run_until([&] { return !crew.held; }) == RunEnd::done);
  crew.end(0, 0);
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("standard input reaches the rank that reads it, a piece at a time") {
  FakeRun run(2);
  run.options.start.has_input = true;
  run.options.start.input_rank = 1;
  run.start();
  REQUIRE(run.run_until([&] { return run.all_started; }) == RunEnd::done);
  run.job->send_input("one ");
  REQUIRE(run.run_until([&] { return run.inputs_taken == 1; }) == RunEnd::done);
  run.job->send_input("two");
  REQUIRE(run.run_until([&] { return run.inputs_taken == 2; }) == RunEnd::done);
  CHECK(run.machines[0].crew->input.empty());
  CHECK(run.machines[1].crew->input == "one two");
  end_well(*run.machines[0].crew);
  end_well(*run.machines[1].crew);
  run.run_to_end();
  CHECK(run.result->exit_code == 0);
}

TEST_CASE("whatever is lost at whatever moment, the job ends on both sides") {
  // 0 resets the link; 1 and 2 stop the node that runs the job, in order and silently; 3 and 4 stop a machine.
  const int what = GENERATE(range(0, 5));
  const bool elastic = GENERATE(false, true);
  const std::uint64_t most = share_of(200);
  Campaign campaign("a job's machine, or who runs it, is lost at each moment");
  for (std::uint64_t moment = 0; moment < most; ++moment) {
    CAPTURE(what, moment, elastic);
    campaign.begin();
    FakeRun run(3, moment + 1);
    if (elastic) run.options.end.elastic.emplace().limit = 1;
    for (FakeMachine& machine : run.machines)
      machine.on_started = [](FakeCrew& crew) {
        crew.print(crew.started->first_rank, "ready\n");
        crew.later([&crew] { crew.later([&crew] { end_well(crew); }); });
      };
    FakeMachine& victim = run.machines[moment % 3];
    const Duration when = Duration::microseconds(static_cast<std::int64_t>(40 * moment));
    if (what == 0) run.world.reset(run.here, victim.node).in(when);
    if (what == 1) run.world.stop(run.here, StopKind::closes_links).in(when);
    if (what == 2) run.world.stop(run.here, StopKind::falls_silent).in(when);
    if (what == 3) run.world.stop(victim.node, StopKind::resets_links).in(when);
    if (what == 4) run.world.stop(victim.node, StopKind::falls_silent).in(when);
    run.start();
    const bool here_lives = what == 0 || what > 2;
    if (here_lives) {
      run.run_to_end();
      const job::JobResult& end = *run.result;
      CAPTURE(end.exit_code, end.error, end.message);
      const bool without = !run.notices.empty() || !end.error.empty();
      if (end.exit_code == 0)
        CHECK((end.ranks.size() == 3 || without));
      else
        CHECK_THAT(end.error + end.message, Contains(victim.name()) || Contains(victim.node.host()));
      run.job.reset();
    }
    const auto quiet = [&] {
      for (FakeMachine& machine : run.machines)
        if ((what < 3 || &machine != &victim) && machine.session) return false;
      return true;
    };
    CHECK(run.run_until(quiet) == RunEnd::done);
    for (FakeMachine& machine : run.machines)
      if (what < 3 || &machine != &victim) {
        CHECK(machine.crew == nullptr);
        CHECK(machine.jobs_started == machine.jobs_ended);
      }
    campaign.goes_well();
  }
}

TEST_CASE("conversations in any order and in pieces of any size leave no job, and nothing starts behind a violation") {
  const job::StartRanks start = [] {
    job::StartRanks ranks;
    ranks.job = 42;
    ranks.ranks = ranks.world_size = 2;
    ranks.program = "/opt/m";
    ranks.coordinator = "127.0.0.1:4711";
    return ranks;
  }();
  const std::vector<job::Message> orderly{job::Hail{job::kProtocol, "1.2.3", "home", "desk", "/opt/m", ""}, job::BindPort{"127.0.0.1", 0},
                                          start};
  const std::vector<job::Message> others{
      job::Offer{}, job::PortBound{1}, job::RanksStarted{},         job::Credit{10, false}, job::Order{15, true, 100}, job::Beat{},
      job::Over{},  job::Input{"x"},   job::EchoRequest{1, "x", 1}, job::PathSurvey{},      job::InputTaken{},         job::TraceTaken{}};
  Campaign campaign("a holder of the token talks to `ringlet up` out of turn");
  for (std::uint64_t seed = 0; seed < share_of(400); ++seed) {
    CAPTURE(seed);
    campaign.begin();
    SimRandom random(seed);
    SimWorld world(seed);
    FakeMachine machine(world, "m");
    std::vector<job::Message> said = orderly;
    // A session takes none of the first three.
    const std::size_t violation = random.below(said.size());
    const bool violates = random.below(2) != 0;
    for (auto count = random.below(4); count > 0; --count) said.push_back(others[random.below(others.size())]);
    if (violates) said.insert(said.begin() + static_cast<std::ptrdiff_t>(violation), others[random.below(3)]);

    ByteUser peer;
    SimNode& here = world.add_node();
    here.network().dial({machine.node.host(), 5000}, Duration::seconds(3), [&](Result<std::unique_ptr<Link>> link) {
      peer.use(std::move(link).value());
      peer.link->wake();
    });
    for (const job::Message& message : said) {
      const std::string body = job::encode(message);
      const auto length = static_cast<std::uint32_t>(body.size());
      for (int shift = 0; shift < 32; shift += 8) peer.outgoing.push_back(static_cast<std::byte>(length >> shift));
      for (const char byte : body) peer.outgoing.push_back(static_cast<std::byte>(byte));
    }
    world.run_for(Duration::seconds(1));
    CHECK(machine.jobs_started == (violates ? 0 : 1));
    peer.link.reset();
    CHECK(world.run_until([&] { return !machine.session; }, {.events = 5'000'000, .time = Duration::seconds(60)}) == RunEnd::done);
    CHECK(machine.crew == nullptr);
    CHECK(machine.jobs_started == machine.jobs_ended);
    campaign.goes_well();
  }
}
