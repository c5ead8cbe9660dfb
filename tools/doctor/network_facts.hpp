#pragma once

#include <chrono>
#include <vector>

#include "tools/doctor/facts.hpp"

namespace ringlet::doctor {

/// This machine's interfaces, as the system has them now.
std::vector<InterfaceFacts> interface_facts();

/// Whether the numeric address is of a network that one of this machine's interfaces is in.
bool is_neighbour(const std::string& host);

/// The numeric addresses of a host name; empty where there is none.
std::vector<std::string> resolve(const std::string& host);

/// Tries to connect to all of them at once, says nothing, and closes: `good`, `refused`, `silent` or `unreachable`, with the system's words
/// and the interface. Waits at most `patience`.
std::vector<PathFacts> knock(const std::vector<Address>& addresses, std::chrono::milliseconds patience);

}  // namespace ringlet::doctor
