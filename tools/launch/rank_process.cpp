#include "tools/launch/rank_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "native/given_descriptor.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/pipe.hpp"
#include "tools/launch/platform.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::launch {

namespace {

std::vector<InheritedFd> list_inherited(const RankStart& start, const UniqueFd& memberships) {
  std::vector<InheritedFd> all{{"RINGLET_MEMBERSHIP_FD", memberships.get(), true}};
  if (start.trace_fd >= 0) all.push_back({"RINGLET_TRACE_FD", start.trace_fd, true});
  const auto add = [&all](const std::vector<InheritedFd>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(start.settings.inherited_by_all);
  if (start.number == 0) add(start.inherited_by_rank_0);
  return all;
}

// Beyond the standard three, a descriptor keeps its number: no other that the rank inherits can have the same.
std::vector<int> make_descriptors(const RankStart& start, int rank, const PipeEnds& out, const PipeEnds& err,
                                  const std::vector<InheritedFd>& inherited) {
  const bool reads = start.job.has_input && static_cast<int>(start.job.input_rank) == rank;
  std::vector<int> descriptors{reads ? start.stdin_fd : -1, out.write_end.get(), err.write_end.get()};
  const auto inherit = [&](int fd) {
    const auto number = static_cast<std::size_t>(fd);
    if (descriptors.size() <= number) descriptors.resize(number + 1, -1);
    descriptors[number] = fd;
  };
  inherit(start.failure_fd);
  inherit(start.guard_fd);
  for (const InheritedFd& one : inherited) inherit(one.fd);
  return descriptors;
}

}  // namespace

RankPipes RankProcess::start(const RankStart& start, std::function<void()> on_dead, std::function<void()> on_reaped) {
  // A rank gets a blocking end: programs do not expect EAGAIN on stdout.
  PipeEnds out = open_pipe(UV_NONBLOCK_PIPE, 0);
  PipeEnds err = open_pipe(UV_NONBLOCK_PIPE, 0);
  PipeEnds memberships = open_socket_pair();
  std::vector<std::string> environment = make_rank_environment(start);
  const std::vector<InheritedFd> inherited = list_inherited(start, memberships.write_end);
  for (const InheritedFd& one : inherited)
    if (const auto told = one.with_file ? native::describe_descriptor(one.fd) : std::to_string(one.fd))
      environment.push_back(fmt::format("{}={}", one.variable, *told));
  std::vector<std::string> arguments{start.settings.helper_path,     kRankCommand,
                                     std::to_string(::getpid()),     std::to_string(start.failure_fd),
                                     std::to_string(start.guard_fd), start.job.program};
  arguments.insert(arguments.end(), start.job.arguments.begin(), start.job.arguments.end());
  ChildOptions child{std::move(arguments), make_descriptors(start, exit_.rank, out, err, inherited), std::move(environment),
                     start.job.directory};
  on_dead_ = std::move(on_dead);
  on_reaped_ = std::move(on_reaped);
  const auto reap = [this](std::int64_t status, int signal_number) { on_exit(status, signal_number); };
  if (const int error = process_.spawn(loop_, std::move(child), reap); error != 0)
    throw LaunchError(1, fmt::format("cannot start rank {}: {}", exit_.rank, uv_strerror(error)));
  exit_.pid = process_.pid();

  death_watch_ = open_death_watch(exit_.pid);
  if (death_watch_ && death_poll_.open(loop_, death_watch_.get()) == 0)
    death_poll_.start(UV_READABLE, [this] {
      death_poll_.stop();
      on_dead_();
    });
  else
    death_watch_.reset();
  return {std::move(out.read_end), std::move(err.read_end), std::move(memberships.read_end)};
}

void RankProcess::on_exit(std::int64_t status, int signal_number) {
  if (signal_number != 0)
    exit_.signal = signal_number;
  else
    exit_.code = static_cast<int>(status);
  if (!death_watch_) on_dead_();
  on_reaped_();
}

void RankProcess::send(int signal_number) {
  if (!gone()) ::kill(-exit_.pid, signal_number);
}

void RankProcess::stop(int signal_number, Clock::time_point kill_at) {
  if (gone()) return;
  if (running()) exit_.stopped = true;
  kill_at_ = std::min(kill_at_, kill_at);
  send(signal_number);
  // A rank that is held by SIGSTOP cannot end itself.
  send(SIGCONT);
}

std::optional<int> RankProcess::find_stop() {
  siginfo_t change{};
  // Exits are libuv's to take.
  if (::waitid(P_PID, static_cast<id_t>(exit_.pid), &change, WSTOPPED | WCONTINUED | WNOHANG) == 0 && change.si_pid != 0)
    stop_signal_ = change.si_code == CLD_STOPPED ? std::optional(change.si_status) : std::nullopt;
  return stop_signal_;
}

void RankProcess::check(Clock::time_point now) {
  if (gone()) return;
  constexpr std::chrono::seconds kKillTime{5};
  if (now >= kill_at_) send(SIGKILL);
  if (stopping() && now - kill_at_ > kKillTime) unkillable_ = true;
  if (!reaped()) return;
  // Orphans of the group that this process has adopted; the leader itself is libuv's to reap.
  while (::waitpid(-exit_.pid, nullptr, WNOHANG) > 0) continue;
  // The group's number stays taken until the leader has been reaped. EPERM says that the processes
  // that are left belong to another user.
  if (::kill(-exit_.pid, 0) != 0 && (errno == ESRCH || errno == EPERM)) gone_ = true;
}

}  // namespace ringlet::launch
