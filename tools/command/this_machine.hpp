#pragma once

#include <string>
#include <vector>

#include "tools/discovery/beacon.hpp"

namespace ringlet::command {

/// Returns the name under which this machine appears to others: its own name, or "unnamed" if it has none.
std::string announced_name();

/// Returns the present state of this machine's processors and memory.
std::vector<discovery::Device> machine_devices();

/// Return a number and a token that cannot be predicted.
std::uint64_t random_number();
std::string fresh_token();

}  // namespace ringlet::command
