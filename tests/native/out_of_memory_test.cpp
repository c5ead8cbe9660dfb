// Tests of what happens where an allocation fails: in one of two processes, at each call in turn, while they meet, work and part.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>

#include "sim/sim_random.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/failing_allocator.hpp"
#include "tests/native/ranks.hpp"
#include "tests/shared_by_processes.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr unsigned kPatienceSeconds = 10;  // less than any timeout of the ranks
constexpr std::uint64_t kForEver = 1ull << 62;

/// What a rank's process leaves behind, in memory that the test shares.
struct Report {
  std::uint64_t calls;
  Errc error;
  bool out_of_memory;
  bool met;  // whether all had met
};

/// Sums in as many streams as there may be.
void work_in_many_streams(Group group) {
  std::vector<std::vector<float>> values(1'000, {1.0f});
  std::vector<Work> works;
  for (std::uint16_t i = 0; i < values.size(); ++i)
    works.push_back(group.all_reduce_async(ReduceOp::sum, values[i], values[i], {.stream = Stream{i}, .timeout = {}}));
  for (Work& work : works) work.wait();
  if (values.back()[0] != 2.0f) std::abort();
}

/// Some of everything: collectives, both forms of calls, several streams, a split, messages, and an average, which is a procedure.
void work(Group group) {
  std::vector<float> values(1'000, static_cast<float>(group.rank() + 1));
  group.all_sum(values);
  if (values[0] != 3.0f) std::abort();
  std::vector<std::vector<float>> many(5, values);
  std::vector<Work> works;
  for (std::uint16_t i = 0; i < many.size(); ++i)
    works.push_back(group.all_reduce_async(ReduceOp::sum, many[i], many[i], {.stream = Stream{i}, .timeout = {}}));
  for (Work& work : works) work.wait();
  const auto half = group.split(0);
  Group(*half).barrier();
  const int other = 1 - group.rank();
  std::vector<float> got(1'000);
  Work sent = group.send_async(values, other);
  group.recv(got, other);
  sent.wait();
  Tree gradients;
  gradients.add("a", values);
  gradients.add("b", got);
  average_gradients(group, gradients);
}

Group meet(int rank, const LoopbackSocket& coordinator, std::chrono::milliseconds patience) {
  InitOptions options;
  if (rank == 0)
    options.listen_fd = coordinator.descriptor;
  else
    ::close(coordinator.descriptor);
  options.rank = rank;
  options.world_size = 2;
  options.coordinator = to_string(coordinator.address);
  options.token = "a token of this test alone";
  options.status = false;
  options.connect_timeout = patience;
  return init(options);
}

using Program = void (*)(Group);

[[noreturn]] void be_rank(Program program, int rank, const LoopbackSocket& coordinator, std::chrono::milliseconds patience,
                          Report& report) {
  try {
    Group group = meet(rank, coordinator, patience);
    report.met = true;
    program(std::move(group));
  } catch (const Error& error) {
    report.error = error.status().code();
  } catch (const std::bad_alloc&) {
    report.out_of_memory = true;
  }
  report.calls = allocation_calls();
  ::_exit(0);
}

/// Ends the process by itself if it takes too long, so that the test need not watch the clock.
::pid_t start_rank(Program program, int rank, const LoopbackSocket& coordinator, std::chrono::milliseconds patience, Report& report,
                   std::uint64_t first, std::uint64_t count) {
  const ::pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(kPatienceSeconds);
  ::signal(SIGABRT, SIG_DFL);  // the test's own handler reports, and is not for this process
  take_libraries_allocators();
  fail_allocations(first, count);
  be_rank(program, rank, coordinator, patience, report);
}

int wait_for(::pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return status;
}

/// Runs a world of two ranks, of which rank `victim` lacks memory from its `first`-th allocation on, for `count` of them.
std::uint64_t run_world(Program program, int victim, std::uint64_t first, std::uint64_t count, Campaign& campaign) {
  campaign.begin();
  bool well = true;
  // A rank waits so long for one that could not even meet it.
  const std::chrono::milliseconds patience(first == 0 ? 5'000 : 500);
  const LoopbackSocket coordinator = open_loopback_socket();
  SharedByProcesses<std::array<Report, 2>> shared;
  auto& reports = *shared;
  ::pid_t pids[2];
  for (const int rank : {0, 1})
    pids[rank] =
        start_rank(program, rank, coordinator, patience, reports[static_cast<std::size_t>(rank)], rank == victim ? first : 0, count);
  ::close(coordinator.descriptor);
  for (const int rank : {0, 1}) {
    const int status = wait_for(pids[rank]);
    const Report& report = reports[static_cast<std::size_t>(rank)];
    CAPTURE(victim, first, count, rank, status, report.error, report.out_of_memory);
    const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    CHECK(ended);
    // A rank that is not there yet is waited for.
    const bool told_at_once = !report.met || report.error != Errc::timed_out;
    CHECK(told_at_once);
    if (rank != victim) CHECK_FALSE(report.out_of_memory);
    well &= ended && told_at_once;
  }
  if (well) campaign.goes_well();
  return reports[static_cast<std::size_t>(victim)].calls;
}

void run_worlds(Program program, std::uint64_t most_tries, Campaign& campaign, std::uint64_t count) {
  for (const int victim : {0, 1}) {
    const std::uint64_t calls = run_world(program, victim, 0, 0, campaign);
    CHECK(calls > 500);
    const std::uint64_t tries = std::min(calls, share_of(most_tries));
    SimRandom random(static_cast<std::uint64_t>(victim) * 2 + (count == 1 ? 0 : 1));
    for (std::uint64_t i = 0; i < tries; ++i) run_world(program, victim, tries == calls ? i + 1 : 1 + random.below(calls), count, campaign);
  }
}

}  // namespace

TEST_CASE("wherever an allocation fails, the rank gets an error and its peer is told at once") {
  const std::uint64_t count = GENERATE(std::uint64_t{1}, kForEver);
  Campaign campaign(count == 1 ? "an allocation fails" : "no memory is left from one moment on");
  run_worlds(work, 40, campaign, count);
}

TEST_CASE("the same with 1,000 streams") {
  const std::uint64_t count = GENERATE(std::uint64_t{1}, kForEver);
  Campaign campaign(count == 1 ? "an allocation fails, with 1,000 streams" : "no memory is left from one moment on, with 1,000 streams");
  run_worlds(work_in_many_streams, 10, campaign, count);
}
