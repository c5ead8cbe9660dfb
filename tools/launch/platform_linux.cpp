#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/launch/platform.hpp"

namespace ringlet::launch {

UniqueFd open_death_watch(pid_t process) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))); }

void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the call.
  if (::getppid() != parent) ::raise(SIGKILL);
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

}  // namespace ringlet::launch
