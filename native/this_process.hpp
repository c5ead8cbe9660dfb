#pragma once

#include "core/engine/world.hpp"

namespace ringlet::native {

/// This machine's name without a domain; empty where the system does not say.
std::string machine_name();

/// What the other ranks are told of this process: the machine's name without a domain, the program's file, its number.
Identity this_process();

}  // namespace ringlet::native
