#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/discovery/directory.hpp"

namespace ringlet::command {

using Machines = std::vector<const discovery::Machine*>;

/// Returns a text such as "15.5 GiB".
std::string bytes_text(std::uint64_t bytes);

/// Returns a heading and a line for each machine. No line is wider than `columns`; 0 means no limit. `colours` highlights the heading.
std::vector<std::string> machine_table(const Machines& machines, std::size_t columns, bool colours);

/// Returns a line such as "attic appeared in group home (192.168.1.7)".
std::string event_line(discovery::Change change, const discovery::Machine& machine);

/// Returns all that is known of the machine.
nlohmann::ordered_json to_json(const discovery::Machine& machine);
nlohmann::ordered_json to_json(const std::vector<NetworkInterface>& interfaces);

/// Returns an object such as {"event": "appeared", "machine": {...}}.
nlohmann::ordered_json event_json(discovery::Change change, const discovery::Machine& machine);

}  // namespace ringlet::command
