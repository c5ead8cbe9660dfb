#include "tools/launch/deputy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "tools/job/machine_session.hpp"
#include "tools/job/message_link.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/local_machine.hpp"
#include "tools/launch/pipe_link.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::launch {

namespace {

UniqueFd copy_of(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

}  // namespace

int run_deputy() {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    UvLoop loop;
    LocalMachine machine(loop, {own_path()});
    if (::write(STDOUT_FILENO, kGreeting.data(), kGreeting.size()) != static_cast<ssize_t>(kGreeting.size())) return 1;
    auto pipes = std::make_unique<PipeLink>(loop, copy_of(STDIN_FILENO), copy_of(STDOUT_FILENO), "its launcher");
    bool over = false;
    job::MachineSession::Events events;
    events.on_over = [&over] { over = true; };
    const job::MachineSession session(loop, std::make_unique<job::MessageLink>(loop, std::move(pipes), job::kPipeLimits), machine,
                                      std::move(events));
    while (!over) loop.wait();
    return 0;
  } catch (const LaunchError& error) {
    print_error("ringlet: {}\n", error.what());
    return error.exit_code();
  }
}

}  // namespace ringlet::launch
