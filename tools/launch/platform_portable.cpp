#include "tools/launch/platform.hpp"

namespace ringlet::launch {

UniqueFd open_death_watch(pid_t) { return {}; }

void end_with_parent(pid_t) {}

void adopt_orphans() {}

}  // namespace ringlet::launch
