#pragma once

#include <memory>

#include "core/base/result.hpp"
#include "core/ports/link.hpp"

namespace ringlet::uv {

class LoopState;

/// Opens a link on a connected, non-blocking TCP socket. On failure the socket is closed, too.
Result<std::unique_ptr<Link>> open_link(LoopState& loop, int socket);

}  // namespace ringlet::uv
