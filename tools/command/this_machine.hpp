#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/discovery/beacon.hpp"

namespace ringlet::command {

/// Returns the name under which this machine appears to others: its own name, or "unnamed" if it has none.
std::string announced_name();

/// Returns a sentence if the text that was given as `option` cannot be announced as it stands.
std::optional<std::string> find_name_mistake(const char* option, const std::string& text);

/// The same for a value of --group, which is also the name of a file that holds the group's token.
std::optional<std::string> find_group_mistake(const std::string& group);

/// Returns the present state of this machine's processors and memory.
std::vector<discovery::Device> machine_devices();

/// Return a number and a token that cannot be predicted.
std::uint64_t random_number();
std::string fresh_token();

}  // namespace ringlet::command
