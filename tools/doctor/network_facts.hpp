#pragma once

#include <chrono>
#include <vector>

#include "tools/doctor/facts.hpp"

namespace ringlet::doctor {

/// Returns this machine's interfaces as the system lists them now.
std::vector<InterfaceFacts> interface_facts();

/// Tells whether the numeric address is in a network of one of this machine's interfaces.
bool is_neighbour(const std::string& host);

/// Returns the numeric addresses of a host name, or none if it cannot be resolved.
std::vector<std::string> resolve(const std::string& host);

/// Tries to connect to all addresses at once, sends nothing, and closes. Each result is `good`, `refused`, `silent` or `unreachable`, with
/// the system's message and the interface. Waits at most `patience`.
std::vector<PathFacts> knock(const std::vector<Address>& addresses, std::chrono::milliseconds patience);

}  // namespace ringlet::doctor
