#pragma once

#include "core/engine/world.hpp"

namespace ringlet::native {

/// What the other ranks are told of this process: the machine's name without a domain, the program's file, its number.
Identity this_process();

}  // namespace ringlet::native
