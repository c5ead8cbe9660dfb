#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/discovery/directory.hpp"

namespace ringlet::command {

using Machines = std::vector<const discovery::Machine*>;

/// By name, then by number.
void sort_by_name(Machines& machines);

/// "15.5 GiB".
std::string bytes_text(std::uint64_t bytes);

/// A heading and a line for each machine, none wider than `columns` (0: as wide as it is). `colours`: the heading stands out.
std::vector<std::string> machine_table(const Machines& machines, std::size_t columns, bool colours);

/// "attic appeared in group home (192.168.1.7)".
std::string event_line(discovery::Change change, const discovery::Machine& machine);

/// All that is known of it.
nlohmann::ordered_json to_json(const discovery::Machine& machine);
nlohmann::ordered_json to_json(const std::vector<NetworkInterface>& interfaces);

/// {"event": "appeared", "machine": {...}}.
nlohmann::ordered_json event_json(discovery::Change change, const discovery::Machine& machine);

}  // namespace ringlet::command
