#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/rank_process.hpp"

namespace ringlet::launch {

/// The port of torch's store in a job whose ranks meet at this port.
std::uint16_t store_port(std::uint16_t coordinator_port);

/// "NAME=VALUE"; nothing where there is no name.
std::optional<job::Variable> parse_variable(std::string_view text);

/// Whether Ringlet alone decides about this variable in its ranks.
bool is_reserved_variable(std::string_view name);
/// A sentence where one of these variables is reserved.
std::optional<std::string> find_reserved(const std::vector<job::Variable>& variables);

/// "NAME=VALUE" strings for one rank: this process' own environment without the variables that say where another group meets, then
/// RINGLET_RANK, RINGLET_WORLD_SIZE, RINGLET_COORDINATOR, torch's RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT unless the rank joins others, with guests RINGLET_GUESTS and RINGLET_LISTEN, the job's RINGLET_TOKEN where it has one,
/// RINGLET_PORTS where its machine has chosen some, RINGLET_TERMINAL_COLUMNS where a terminal shows the output, in an elastic job
/// RINGLET_RESTARTS and, where the rank joins others, RINGLET_JOIN, then the job's own variables.
std::vector<std::string> make_rank_environment(const RankStart& start);

}  // namespace ringlet::launch
