#pragma once

#include <string>
#include <vector>

#include "tools/discovery/beacon.hpp"

namespace ringlet::command {

/// What this machine is called towards others: its name, or "unnamed".
std::string announced_name();

/// This machine's processors and memory, as they are now.
std::vector<discovery::Device> machine_devices();

/// A number that nobody can foretell.
std::uint64_t random_number();

}  // namespace ringlet::command
