#pragma once

#include "core/ports/network.hpp"

namespace ringlet::uv {

class LoopState;

/// Binds a socket and listens. Fails with `invalid_argument`, whose text has the address and advice.
Result<std::unique_ptr<Listener>> open_listener(LoopState& loop, const Address& address, Acceptor on_accept);
/// Takes over a socket that already listens. On failure the socket stays the caller's.
Result<std::unique_ptr<Listener>> adopt_listener(LoopState& loop, int socket, Acceptor on_accept);

}  // namespace ringlet::uv
