#pragma once

#include <string>

#include "tools/launch/launch_options.hpp"

namespace ringlet::launch {

/// "SIGTERM"; "signal 35" for one without a common name.
std::string signal_name(int signal_number);

/// "rank 2 (pid 1234) exited with code 3; stopped ranks 0, 1".
std::string describe_failure(const LaunchResult& result);
/// "; stopped ranks 0, 1", "; stopped rank 0", or nothing.
std::string describe_stopped(const LaunchResult& result);

/// One line of JSON without a newline: exit_code, first_failed and, for each rank, rank, pid, code, signal, stopped; what does not apply is
/// null.
std::string to_json(const LaunchResult& result);

}  // namespace ringlet::launch
