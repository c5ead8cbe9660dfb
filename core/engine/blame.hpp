#pragma once

#include <ringlet/status.hpp>
#include <string>

#include "core/engine/options.hpp"

namespace ringlet {

/// What it means for this rank that `peer`, whose name for people is `name`, ends the world with this status.
Status blame_for_abort(const WorldOptions& options, int peer, const std::string& name, const Status& status);

/// However a guest breaks an elastic world, for the others it is one that they have lost, unless it has revoked the epoch; so is a process
/// that has just joined and calls something else than they, since it may be any program that knows the token.
Status as_loss(const WorldOptions& options, const Status& status);

}  // namespace ringlet
