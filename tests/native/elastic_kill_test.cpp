// Processes of an elastic group are killed one after the other, and those that are left go on.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <ringlet/ringlet.hpp>
#include <string>
#include <vector>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/ranks.hpp"
#include "tests/shared_by_processes.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 4;
constexpr unsigned kPatienceSeconds = 60;  // a process that hangs ends by itself

constexpr int kLeftOut = 3;  // how a rank ends that the others went on without

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

void pass(std::chrono::microseconds time) {
  const timespec wait{0, static_cast<long>(time.count() * 1000)};
  ::nanosleep(&wait, nullptr);
}

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

::pid_t start(int rank, const LoopbackSocket& coordinator, bool encrypt, Crew& crew, std::chrono::milliseconds heartbeat_timeout = 4s) {
  const ::pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(kPatienceSeconds);
  ::signal(SIGABRT, SIG_DFL);
  try {
    if (rank == 0)
      ::setenv("RINGLET_COORDINATOR_FD", std::to_string(coordinator.descriptor).c_str(), 1);
    else
      ::close(coordinator.descriptor);
    InitOptions options;
    options.rank = rank;
    options.world_size = kRanks;
    options.coordinator = to_string(coordinator.address);
    if (encrypt) options.token = "4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16";
    options.elastic = true;
    options.on_split = OnSplit::wait;
    options.status = false;
    options.heartbeat_timeout = heartbeat_timeout;
    work(init(options), rank, crew);
    ::_exit(0);
  } catch (const PeerLost& lost) {
    ::_exit(std::string(lost.what()).find("gone on without rank " + std::to_string(rank)) == std::string::npos ? 1 : kLeftOut);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    ::_exit(1);
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
  const auto end = Clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (!are_in(crew, ranks, epoch)) {
    if (Clock::now() > end) return false;
    pass(100us);
  }
  return true;
}

/// -1 where a signal has ended it.
int exit_code_of(::pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

// The moments are random on purpose, so these tests wait for time to pass.
TEST_CASE("whichever rank is killed, and whenever, the others go on to the last one") {
  Campaign campaign("ranks of an elastic group are killed, one after the other: the next step");
  for (const auto seed : seeds(67)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const LoopbackSocket coordinator = open_loopback_socket();
    SharedByProcesses<Crew> shared;
    Crew& crew = *shared;
    std::array<::pid_t, kRanks> pids{};
    std::vector<int> left;
    for (int rank = 0; rank < kRanks; ++rank) {
      pids[static_cast<std::size_t>(rank)] = start(rank, coordinator, seed % 2 == 1, crew);
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
      int status = 0;
      REQUIRE(::waitpid(pid, &status, 0) == pid);
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
  Campaign campaign("a rank of an elastic group is stopped, with a limit of 0.5 s: the next step");
  for (const auto seed : seeds(2)) {
    CAPTURE(seed);
    campaign.begin();
    const int victim = seed % 2 == 0 ? 0 : 2;
    const LoopbackSocket coordinator = open_loopback_socket();
    SharedByProcesses<Crew> shared;
    Crew& crew = *shared;
    std::array<::pid_t, kRanks> pids{};
    for (int rank = 0; rank < kRanks; ++rank) pids[static_cast<std::size_t>(rank)] = start(rank, coordinator, false, crew, 500ms);
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
