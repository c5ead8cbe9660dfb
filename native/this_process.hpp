#pragma once

#include "core/engine/world.hpp"

namespace ringlet::native {

/// This machine's name without a domain; empty where the system does not say.
std::string machine_name();

/// A number for a new world, which no other world is likely to have.
std::uint64_t random_world_id();

/// How this process is described to the other ranks: the machine's name without a domain, the name of the program's file, and the process
/// id.
Identity this_process();

}  // namespace ringlet::native
