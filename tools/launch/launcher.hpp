#pragma once

#include "tools/job/job_result.hpp"
#include "tools/launch/launch_options.hpp"

namespace ringlet::launch {

/// Runs N copies of a program on this machine as the ranks of one group, until none of their processes is left. To be called from the
/// thread that owns the process' signal handling. Writes the ranks' output to the process' stdout and stderr, and returns everything else.
/// From here on SIGPIPE is ignored and, on Linux, orphaned descendants are adopted.
///
/// Each signal is sent to a rank's process group; a process that leaves that group is on its own. Throws `LaunchError` where nothing could
/// be started.
job::JobResult launch(const LaunchOptions& options);

}  // namespace ringlet::launch
