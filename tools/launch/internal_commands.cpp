#include "tools/launch/internal_commands.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tools/launch/deputy.hpp"
#include "tools/launch/platform.hpp"

namespace ringlet::launch {

namespace {

constexpr int kRankArguments = 5;  // program, internal-exec, launcher, failure descriptor, guard descriptor

/// The guard's life: learns process groups from standard input (a positive number adds one, a negative one removes it), and when the last
/// writer has gone, kills those that are left. The writers are the launcher and, until they become the program, the ranks' helpers.
int run_guard() {
  // Ending every `ringlet` by name must not end the guard before the launcher.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  std::set<std::int32_t> groups;
  std::int32_t change = 0;
  // Each write is one number, so pipe reads never see half of one.
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, &change, sizeof change);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof change) break;
    if (change > 1)
      groups.insert(change);
    else
      groups.erase(-change);
  }
  for (const std::int32_t group : groups) ::kill(-group, SIGKILL);
  return 0;
}

/// `ringlet internal-exec LAUNCHER_PID FAILURE_FD GUARD_FD PROGRAM ARGS...`: registers its process group with the guard, ties its life
/// to the launcher's, and becomes PROGRAM. Returns only if that fails: 127 (not found) or 126.
int run_rank(int argc, char** argv) {
  if (argc <= kRankArguments) return 2;
  const pid_t launcher = std::atoi(argv[2]);
  const int failure_fd = std::atoi(argv[3]);
  const int guard_fd = std::atoi(argv[4]);
  ::fcntl(failure_fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(guard_fd, F_SETFD, FD_CLOEXEC);

  const std::int32_t group = ::getpid();
  ::signal(SIGPIPE, SIG_IGN);
  // Fails only where the guard was killed, which the launcher notices itself.
  const bool registered = ::write(guard_fd, &group, sizeof group) == sizeof group;
  end_with_parent(launcher);
  ::signal(SIGPIPE, SIG_DFL);
  if (!registered) return 1;

  ::execvp(argv[kRankArguments], argv + kRankArguments);
  const ExecError failure = errno;
  if (::write(failure_fd, &failure, sizeof failure) != sizeof failure) return 1;
  return failure == ENOENT || failure == ENOTDIR ? 127 : 126;
}

}  // namespace

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  std::size_t length = path.size();
  return uv_exepath(path.data(), &length) == 0 ? std::string(path.data(), length) : std::string("ringlet");
}

std::optional<int> run_internal_command(int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  if (std::strcmp(argv[1], kGuardCommand) == 0) return run_guard();
  if (std::strcmp(argv[1], kRankCommand) == 0) return run_rank(argc, argv);
  if (std::strcmp(argv[1], kDeputyCommand) == 0) return run_deputy();
  return std::nullopt;
}

}  // namespace ringlet::launch
