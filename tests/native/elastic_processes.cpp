#include "tests/native/elastic_processes.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace ringlet::test {

namespace {

constexpr unsigned kPatienceSeconds = 60;

InitOptions options_of(const RankProcesses& processes) {
  InitOptions options;
  if (processes.encrypt) options.token = "4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16";
  options.elastic = true;
  options.on_split = processes.on_split;
  options.status = false;
  options.heartbeat_timeout = processes.heartbeat_timeout;
  return options;
}

::pid_t start(const RankProcesses& processes, const std::function<void()>& body) {
  const ::pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(static_cast<unsigned>(processes.life.count()));
  ::signal(SIGABRT, SIG_DFL);
  try {
    body();
    ::_exit(0);
  } catch (const PeerLost& lost) {
    const bool left_out = std::string(lost.what()).find("gone on without rank") != std::string::npos;
    if (!left_out) std::fprintf(stderr, "process %d: %s\n", static_cast<int>(::getpid()), lost.what());
    ::_exit(left_out ? kLeftOut : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", static_cast<int>(::getpid()), error.what());
    ::_exit(1);
  }
}

}  // namespace

::pid_t start_rank(int rank, const LoopbackSocket& coordinator, const RankProcesses& processes, const std::function<void(Group)>& work) {
  return start(processes, [&] {
    InitOptions options = options_of(processes);
    if (rank == 0)
      options.listen_fd = coordinator.descriptor;
    else
      ::close(coordinator.descriptor);
    options.rank = rank;
    options.world_size = processes.ranks;
    options.coordinator = to_string(coordinator.address);
    if (processes.prepare) processes.prepare(options);
    work(init(options));
  });
}

::pid_t start_newcomer(const std::string& doors, const RankProcesses& processes, const std::function<void(Group)>& work) {
  return start(processes, [&] {
    InitOptions options = options_of(processes);
    options.join = doors;
    if (processes.prepare) processes.prepare(options);
    work(init(options));
  });
}

int exit_code_of(::pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) throw std::runtime_error("no process " + std::to_string(pid));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void die_after(std::chrono::nanoseconds delay) {
  std::thread([end = std::chrono::steady_clock::now() + delay] {
    while (std::chrono::steady_clock::now() < end) {
    }
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

bool wait_until(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pass(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace ringlet::test
