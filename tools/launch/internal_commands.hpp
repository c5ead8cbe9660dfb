#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ringlet::launch {

/// First arguments with which the launcher starts the `ringlet` binary for its own purposes; users have no use for them.
inline constexpr char kRankCommand[] = "internal-exec";
inline constexpr char kGuardCommand[] = "internal-guard";
inline constexpr char kDeputyCommand[] = "internal-deputy";

/// The report of a rank's helper on the failure pipe, where it cannot become the program: errno.
using ExecError = std::int32_t;

/// Path of this program's own binary.
std::string own_path();

/// Runs an internal command to its end and returns its exit code; nothing where the arguments name none. To be called first in main.
std::optional<int> run_internal_command(int argc, char** argv);

}  // namespace ringlet::launch
