#pragma once

#include "core/engine/options.hpp"
#include "core/engine/peers.hpp"

namespace ringlet {

/// Shows the other ranks that this one is alive, and finds those that are silent for too long.
class Heartbeats {
 public:
  Heartbeats(const WorldOptions& options, Peers& peers, Instant now) : options_(options), peers_(peers), last_tick_(now) {}

  /// To be called regularly. Returns `peer_lost` with a rank that has been silent for longer than the heartbeat timeout.
  Status on_tick(Instant now);

 private:
  Status check(Session& session, Instant now) const;
  Duration patience_with(int peer) const;

  const WorldOptions& options_;
  Peers& peers_;
  Instant last_tick_{};
};

}  // namespace ringlet
