#pragma once

#include <sys/types.h>

#include "transport/unique_fd.hpp"

namespace ringlet::launch {

/// A descriptor that becomes readable when the process dies. Several of them become ready in the order of the deaths, which exit
/// notifications do not keep. Empty where the system has none; it then reports exits in order by itself, or not at all.
UniqueFd open_death_watch(pid_t process);

/// Has this process killed when `parent` dies, where the system can do that. Survives exec.
void end_with_parent(pid_t parent);

/// Makes this process the parent of the processes that its children leave behind, where the system can do that. Otherwise the system's
/// first process gets them, and in many containers that one reaps late or never, so that a process group seems to live on.
void adopt_orphans();

}  // namespace ringlet::launch
