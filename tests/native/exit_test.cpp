#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

// What a rank makes of its part, as its exit code.
constexpr int kWell = 7;

Group meet(int rank, int size, const LoopbackSocket& coordinator) {
  InitOptions options;
  options.rank = rank;
  options.world_size = size;
  options.coordinator = to_string(coordinator.address);
  options.status = false;
  options.operation_timeout = std::chrono::seconds(60);
  if (rank == 0) options.listen_fd = coordinator.descriptor;
  return init(options);
}

/// Runs `body` in a process of its own, which ends by exit(), with its code.
::pid_t start_process(const std::function<int()>& body) {
  std::fflush(nullptr);
  const ::pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid > 0) return pid;
  ::alarm(60);
  int code = 1;
  try {
    code = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", static_cast<int>(::getpid()), error.what());
  }
  std::exit(code);
}

int exit_code(::pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Of a rank whose group is destroyed at exit.
std::optional<Group> own_group;

enum class AtExit { is_destroyed, stays };

/// Runs `body` as every rank, each a process.
void run_processes(int size, AtExit end, const std::function<int(Group&)>& body) {
  const LoopbackSocket coordinator = open_loopback_socket();
  std::vector<::pid_t> processes;
  for (int rank = 0; rank < size; ++rank)
    processes.push_back(start_process([&, rank] {
      own_group = meet(rank, size, coordinator);
      if (end == AtExit::is_destroyed) return body(*own_group);
      static Group* const kept = new Group(std::move(*own_group));
      own_group.reset();
      return body(*kept);
    }));
  ::close(coordinator.descriptor);
  for (const ::pid_t pid : processes) CHECK(exit_code(pid) == kWell);
}

template <class Call>
bool refuses_forked(Call call, ::pid_t parent) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    return text.find("(pid " + std::to_string(::getpid()) + ")") != std::string::npos &&
           text.find("(pid " + std::to_string(parent) + ")") != std::string::npos;
  }
  return false;
}

/// What a forked process does with what it has inherited. Returns its exit code.
int use_inherited(Work work, ::pid_t parent) {
  std::optional<Group>& group = own_group;
  std::vector<float> value{1};
  if (group->size() != 3) return 1;
  if (!refuses_forked([&] { group->all_sum(value); }, parent)) return 2;
  if (!refuses_forked([&] { (void)group->barrier_async(); }, parent)) return 3;
  if (!refuses_forked([&] { (void)group->split(0); }, parent)) return 4;
  if (!refuses_forked([&] { work.wait(); }, parent)) return 5;
  if (!refuses_forked([&] { work.wait_for(std::chrono::hours(1)); }, parent)) return 6;
  if (!refuses_forked([&] { work.on_done([](const Status&) {}); }, parent)) return 8;
  if (!refuses_forked([&] { group->leave(); }, parent)) return 9;
  if (work.status().code() != Errc::invalid_argument) return 10;
  {
    const Work dropped = std::move(work);
  }
  group.reset();
  leave_all();
  // It may form groups of its own.
  Group alone;
  alone.all_sum(value);
  return value[0] == 1 ? kWell : 11;
}

}  // namespace

TEST_CASE("a rank that ends first is no loss for those that go on without it") {
  run_processes(3, AtExit::stays, [](Group& group) {
    auto part = group.split(group.rank() == 2 ? -1 : 0);
    if (group.rank() == 2) return kWell;
    // The others' goodbye takes its time; these sums are more than enough for a loss to show.
    for (int step = 0; step < 2000; ++step)
      if (sum_of(*part, 1) != 2) return 2;
    std::vector<std::int32_t> value{1};
    try {
      group.recv(value, 2);
    } catch (const PeerLost& lost) {
      return std::string(lost.what()).find("left") != std::string::npos ? kWell : 3;
    }
    return 4;
  });
}

TEST_CASE("leave_all() leaves, and calls then fail") {
  run_processes(2, AtExit::stays, [](Group& group) {
    group.barrier();
    leave_all();
    leave_all();
    try {
      group.barrier();
    } catch (const Cancelled&) {
      return kWell;
    } catch (const PeerLost&) {
      // The other was quicker.
      return kWell;
    }
    return 2;
  });
}

TEST_CASE("a forked process cannot use a group, frees it without harm, and ends unnoticed") {
  run_processes(3, AtExit::is_destroyed, [](Group& group) {
    const ::pid_t self = ::getpid();
    std::vector<float> value{1}, late{0};
    const int left = (group.rank() + 2) % 3, right = (group.rank() + 1) % 3;
    Work pending = group.recv_async(late, left);
    sum_of(group, 1);
    for (int kind = 0; kind < 3; ++kind) {
      const ::pid_t child = start_process([&] {
        if (kind == 0) return use_inherited(std::move(pending), self);
        if (kind == 1) ::_exit(kWell);
        return kWell;
      });
      // Both go on at the same time.
      for (int step = 0; step < 50; ++step)
        if (sum_of(group, 1) != 3) return 2;
      if (exit_code(child) != kWell) return 3;
      if (sum_of(group, 1) != 3) return 4;
    }
    group.send(value, right);
    pending.wait();
    return late[0] == 1 ? kWell : 5;
  });
}

TEST_CASE("a forked process that lives on keeps nobody from leaving") {
  run_processes(2, AtExit::is_destroyed, [](Group& group) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return 2;
    const ::pid_t child = start_process([&] {
      ::close(pipe[1]);
      char byte = 0;
      return ::read(pipe[0], &byte, 1) == 0 ? kWell : 1;
    });
    ::close(pipe[0]);
    group.barrier();
    leave_all();
    ::close(pipe[1]);
    return exit_code(child);
  });
}
