#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/agent/fake_machines.hpp"

namespace ringlet::test {

/// Each machine has one rank, and all are in the group at once.
struct ElasticRun : FakeRun {
  explicit ElasticRun(int count, int least, int limit) : FakeRun(count) {
    job::RestartPolicy::Options& elastic = options.end.elastic.emplace();
    elastic.least = least;
    elastic.limit = limit;
    for (FakeMachine& machine : machines)
      machine.on_started = [count](FakeCrew& crew) { crew.enter(crew.started->first_rank, 0, static_cast<std::uint32_t>(count)); };
  }
  void begin() {
    start();
    REQUIRE(run_until([this] { return all_started; }) == RunEnd::done);
    world.run_for(Duration::milliseconds(100));
  }
  FakeCrew& crew(std::size_t machine) { return *machines[machine].crew; }
  void await_restarts(const std::vector<std::size_t>& of) {
    const auto restarted = [&](std::size_t machine) { return machines[machine].crew != nullptr && !crew(machine).restarted.empty(); };
    REQUIRE(run_until([&] { return std::all_of(of.begin(), of.end(), restarted); }) == RunEnd::done);
  }
  void end_all_well() {
    for (FakeMachine& machine : machines)
      if (machine.crew != nullptr)
        for (const std::uint32_t rank : std::set<std::uint32_t>(machine.crew->running)) machine.crew->end(rank, 0);
  }
};

}  // namespace ringlet::test
