#pragma once

#include "core/ports/network.hpp"

namespace ringlet::uv {

class LoopState;

/// Binds a socket and listens. A failure is `invalid_argument` with the address and advice.
Result<std::unique_ptr<Listener>> open_listener(LoopState& loop, const Address& address, Acceptor on_accept);
/// Takes over a socket that listens already. On failure the socket stays the caller's.
Result<std::unique_ptr<Listener>> adopt_listener(LoopState& loop, int socket, Acceptor on_accept);

}  // namespace ringlet::uv
