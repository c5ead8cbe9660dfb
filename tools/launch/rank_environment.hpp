#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/launch_options.hpp"

namespace ringlet::launch {

/// Whether the launcher alone decides about this variable in its ranks.
bool is_reserved_variable(std::string_view name);

/// "[2] ", what stands before each line of the rank, as wide as that of the last one; empty where nothing shall.
std::string make_prefix(const LaunchOptions& options, int rank);

/// "NAME=VALUE" strings for one rank: the launcher's own environment without what says where another group meets, then RINGLET_RANK,
/// RINGLET_WORLD_SIZE, RINGLET_COORDINATOR, with guests RINGLET_GUESTS and RINGLET_LISTEN,
/// RINGLET_TERMINAL_COLUMNS where a terminal shows their output, then the user's additions.
std::vector<std::string> make_rank_environment(const LaunchOptions& options, int rank, const std::string& coordinator);

}  // namespace ringlet::launch
