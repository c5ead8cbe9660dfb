#pragma once

#include <memory>

#include "core/ports/peer_memory.hpp"

namespace ringlet::local {

/// Opens this system's calls for reading other processes' memory; null on a system that has none.
std::unique_ptr<PeerMemory> open_peer_memory();

}  // namespace ringlet::local
