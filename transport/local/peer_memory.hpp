#pragma once

#include <memory>

#include "core/ports/peer_memory.hpp"

namespace ringlet::local {

/// Reads other processes' memory by this system's calls; null where it has none.
std::unique_ptr<PeerMemory> open_peer_memory();

}  // namespace ringlet::local
