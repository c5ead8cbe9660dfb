#include "transport/local/peer_memory.hpp"

namespace ringlet::local {

std::unique_ptr<PeerMemory> open_peer_memory() { return nullptr; }

}  // namespace ringlet::local
