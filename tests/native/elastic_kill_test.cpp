// Processes of an elastic group are killed one after the other, and those that are left go on.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ringlet/ringlet.hpp>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/elastic_processes.hpp"
#include "tests/shared_by_processes.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 4;
using Clock = std::chrono::steady_clock;

struct Progress {
  std::atomic<std::uint32_t> epoch;
  std::atomic<std::uint32_t> steps;  // in that epoch
  std::atomic<bool> wrong;
};
struct Crew {
  std::array<Progress, kRanks> ranks;
  std::atomic<bool> stop;
};

/// Adds until it is told to stop, on all ranks in the same step.
void work(Group group, int origin, Crew& crew) {
  Progress& own = crew.ranks[static_cast<std::size_t>(origin)];
  std::vector<int> members{0, 1, 2, 3};
  for (std::uint32_t step = 0;; ++step) {
    try {
      // Large enough for a ring now and then, so that ranks are killed in the midst of it.
      std::vector<std::int32_t> values(step % 5 == 0 ? 100'000 : 100, 1 << origin);
      values.back() = crew.stop && group.rank() == 0 ? 1 : 0;
      group.all_sum(values);
      std::int32_t mask = 0;
      for (const int member : members) mask |= 1 << member;
      if (std::any_of(values.begin(), values.end() - 1, [&](std::int32_t value) { return value != mask; })) own.wrong = true;
      own.steps = step + 1;
      if (values.back() != 0) return;
    } catch (const PeerLost&) {
      const Reformed next = group.reform();
      std::vector<int> left;
      for (const int rank : next.before) left.push_back(members[static_cast<std::size_t>(rank)]);
      members = left;
      group = next.world;
      own.steps = 0;
      own.epoch = group.epoch();
      step = 0;
    }
  }
}

/// Whether all these ranks are in this epoch and have done a step in it.
bool are_in(const Crew& crew, const std::vector<int>& ranks, std::uint32_t epoch) {
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const Progress& progress = crew.ranks[static_cast<std::size_t>(rank)];
    return progress.epoch >= epoch && progress.steps > 0;
  });
}

bool wait_until_in(const Crew& crew, const std::vector<int>& ranks, std::uint32_t epoch) {
  return wait_until([&] { return are_in(crew, ranks, epoch); });
}

}  // namespace

// The moments are random on purpose, so these tests wait for time to pass.
TEST_CASE("whichever rank is killed, and whenever, the others go on to the last one") {
  Campaign campaign("ranks of an elastic group are killed, one after the other: all others do the next step");
  for (const auto seed : seeds(67)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const LoopbackSocket coordinator = open_loopback_socket();
    SharedByProcesses<Crew> shared;
    Crew& crew = *shared;
    std::array<::pid_t, kRanks> pids{};
    std::vector<int> left;
    for (int rank = 0; rank < kRanks; ++rank) {
      pids[static_cast<std::size_t>(rank)] = start_rank(rank, coordinator, {.ranks = kRanks, .encrypt = seed % 2 == 1},
                                                        [&](Group group) { work(std::move(group), rank, crew); });
      left.push_back(rank);
    }
    ::close(coordinator.descriptor);
    REQUIRE(wait_until_in(crew, left, 0));
    for (std::uint32_t epoch = 1; epoch < kRanks; ++epoch) {
      campaign.begin();
      pass(std::chrono::microseconds(random.below(20'000)));
      const auto victim = left.begin() + static_cast<std::ptrdiff_t>(random.below(left.size()));
      const ::pid_t pid = pids[static_cast<std::size_t>(*victim)];
      CAPTURE(epoch, *victim);
      const auto begin = Clock::now();
      ::kill(pid, SIGKILL);
      left.erase(victim);
      exit_code_of(pid);
      REQUIRE(wait_until_in(crew, left, epoch));
      campaign.goes_well_since(begin);
    }
    crew.stop = true;
    for (const int rank : left) {
      CHECK(exit_code_of(pids[static_cast<std::size_t>(rank)]) == 0);
      CHECK_FALSE(crew.ranks[static_cast<std::size_t>(rank)].wrong);
    }
  }
}

TEST_CASE("a rank that is stopped is left out, and learns it when it goes on") {
  Campaign campaign("a rank of an elastic group is stopped, with a limit of 0.5 s: all others do the next step");
  for (const auto seed : seeds(2)) {
    CAPTURE(seed);
    campaign.begin();
    const int victim = seed % 2 == 0 ? 0 : 2;
    const LoopbackSocket coordinator = open_loopback_socket();
    SharedByProcesses<Crew> shared;
    Crew& crew = *shared;
    std::array<::pid_t, kRanks> pids{};
    for (int rank = 0; rank < kRanks; ++rank)
      pids[static_cast<std::size_t>(rank)] = start_rank(rank, coordinator, {.ranks = kRanks, .heartbeat_timeout = 500ms},
                                                        [&](Group group) { work(std::move(group), rank, crew); });
    ::close(coordinator.descriptor);
    REQUIRE(wait_until_in(crew, {0, 1, 2, 3}, 0));
    std::vector<int> left{0, 1, 2, 3};
    left.erase(left.begin() + victim);
    const ::pid_t stopped = pids[static_cast<std::size_t>(victim)];
    const auto begin = Clock::now();
    ::kill(stopped, SIGSTOP);
    REQUIRE(wait_until_in(crew, left, 1));
    campaign.goes_well_since(begin);
    ::kill(stopped, SIGCONT);
    CHECK(exit_code_of(stopped) == kLeftOut);
    crew.stop = true;
    for (const int rank : left) CHECK(exit_code_of(pids[static_cast<std::size_t>(rank)]) == 0);
  }
}
