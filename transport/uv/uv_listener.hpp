#pragma once

#include "core/ports/network.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::uv {

class LoopState;

/// Binds a socket and listens. Fails with `invalid_argument`, whose text has the address and advice.
Result<std::unique_ptr<Listener>> open_listener(LoopState& loop, const Address& address, Acceptor on_accept);
/// Takes over a socket that already listens.
Result<std::unique_ptr<Listener>> adopt_listener(LoopState& loop, UniqueFd socket, Acceptor on_accept);

}  // namespace ringlet::uv
