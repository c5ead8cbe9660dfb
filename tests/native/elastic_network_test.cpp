// Ranks that train together are on a machine each, and the cables between these are pulled.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/training_town.hpp"
#include "tests/process/network_of_hosts.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

const TownTraining kTraining{.computing = 1ms};
bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

/// Each rank on a host of its own, from `first_host` on, with the usual limits.
RankProcesses processes_on(const NetworkOfHosts& network, int first_host, int ranks, OnSplit on_split) {
  RankProcesses processes{.ranks = ranks, .encrypt = true, .on_split = on_split, .life = 100s};
  processes.prepare = [&network, first_host](InitOptions& options) {
    options.listen_fd.reset();
    const NetworkHost& host = network.host(first_host + options.rank.value());
    if (!host.enter()) throw std::runtime_error("no way into a network namespace");
    options.coordinator = network.host(first_host).address() + ":4711";
    options.listen = host.address();
  };
  return processes;
}

/// Waits until this process has committed so many more steps, each of which takes a millisecond at least.
bool does_steps(TrainingTown& town, int number, std::uint64_t steps) {
  return wait_until([&, end = town.steps_of(number) + steps] { return town.steps_of(number) >= end; });
}

void check_all_steps(TrainingTown& town) {
  CHECK(town.journal().differences() == 0);
  CHECK(town.journal().gaps() == 0);
  CHECK_FALSE(first_difference(town.journal(), kTraining));
}

}  // namespace

TEST_CASE("a rank whose cable is pulled is left out, and comes back when the cable does") {
  if (!networks_are_here()) return;
  Campaign cuts("the cable of a rank that trains is pulled, with the usual limit of 4 s: the others commit a step");
  Campaign returns("the cable of a rank that trained is back: it joins again, and all commit a step");
  for (const auto seed : seeds(2)) {
    SimRandom random(seed);
    NetworkOfHosts network(4);
    TrainingTown town(kTraining, processes_on(network, 0, 4, OnSplit::wait));
    REQUIRE(town.go_on());
    const int victim = static_cast<int>((seed * 3 + random.below(2)) % 4);
    CAPTURE(seed, victim);
    town.write_apart(victim);
    cuts.begin();
    const auto cut = Campaign::Clock::now();
    network.host(victim).ip("link set eth0 down");
    town.cut_off(victim);
    REQUIRE(town.go_on());
    cuts.goes_well_since(cut);
    REQUIRE(does_steps(town, (victim + 1) % 4, 1000));
    returns.begin();
    const auto mended = Campaign::Clock::now();
    network.host(victim).ip("link set eth0 up");
    town.come_back(victim);
    REQUIRE(town.go_on());
    returns.goes_well_since(mended);
    CHECK(town.end_well());
    check_all_steps(town);
    CHECK(town.journal().differences_from(town.apart()) <= 1);
  }
}

TEST_CASE("of two ranks with a cut cable between them each waits, or goes on alone, as the policy says, and they meet when it is back") {
  if (!networks_are_here()) return;
  Campaign campaign(
      "the cable between two ranks that train is pulled, and is back later: each waits or goes on alone, as the policy says, and both "
      "commit a step together then");
  NetworkOfHosts network(4);
  TrainingTown waits(kTraining, processes_on(network, 0, 2, OnSplit::wait)), forks(kTraining, processes_on(network, 2, 2, OnSplit::fork));
  REQUIRE(waits.go_on());
  REQUIRE(forks.go_on());
  for (TrainingTown* town : {&waits, &forks}) town->write_apart(1);
  campaign.begin(2);
  const auto pull = [&](const std::string& state) {
    for (const int host : {1, 3}) network.host(host).ip("link set eth0 " + state);
  };
  pull("down");
  REQUIRE(wait_until([&] { return forks.ranks_of(0) == 1 && forks.ranks_of(1) == 1; }));
  const std::uint64_t before[]{waits.steps_of(0), waits.steps_of(1)};
  for (const int number : {0, 1}) CHECK(does_steps(forks, number, 1000));
  for (const int number : {0, 1}) {
    CHECK(waits.steps_of(number) == before[number]);
    CHECK(forks.ranks_of(number) == 1);
  }
  pull("up");
  const auto mended = Campaign::Clock::now();
  for (TrainingTown* town : {&waits, &forks}) {
    REQUIRE(wait_until([&] { return town->ranks_of(0) == 2 && town->ranks_of(1) == 2; }));
    REQUIRE(town->go_on());
    campaign.goes_well_since(mended);
    CHECK(town->end_well());
    check_all_steps(*town);
  }
  CHECK(waits.journal().differences_from(waits.apart()) <= 1);
}

TEST_CASE("a rank that reaches the others by their second addresses alone comes back after it stood still") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  network.host(2).ip("link set eth0 down");
  RankProcesses processes{.ranks = 3, .encrypt = true, .heartbeat_timeout = 500ms};
  processes.prepare = [&network](InitOptions& options) {
    options.listen_fd.reset();
    if (!network.host(options.rank.value()).enter()) throw std::runtime_error("no way into a network namespace");
    options.coordinator = network.host(0).address(1) + ":4711";
  };
  TrainingTown town(kTraining, processes);
  REQUIRE(town.go_on());
  town.stop(2);
  REQUIRE(town.go_on());
  town.wake(2);
  REQUIRE(town.go_on());
  CHECK(town.ranks_of(2) == 3);
  CHECK(town.end_well());
  check_all_steps(town);
}
