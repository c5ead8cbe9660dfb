#pragma once

#include <memory>

#include "core/ports/peer_memory.hpp"

namespace ringlet::local {

/// This system's way to read other processes' memory; null where it has none.
std::unique_ptr<PeerMemory> open_peer_memory();

}  // namespace ringlet::local
