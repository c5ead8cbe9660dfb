#pragma once

#include <span>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "core/engine/options.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// A link that this rank has to dial.
struct PlannedLink {
  int peer = 0;
  bool relayed = false;                 // whether `targets` are those of the rank that relays between the two
  std::vector<wire::Endpoint> targets;  // where the peer or the relay can be dialled, the likeliest first; at least one
};

/// The links that a rank dials where a hostfile says where each rank listens: those with all lower ranks.
std::vector<PlannedLink> plan_links(std::span<const std::vector<Address>> addresses_by_rank, int own_rank);

/// The links that a rank dials once it has the roster. A native rank dials all lower ones, and rank 0 only where a faster link may be found
/// than the one over which it joined. A guest dials every native rank, and for each other guest the rank that relays. `coordinator` is
/// where this rank reaches rank 0. `protocol_error` where the roster lacks a rank.
Result<std::vector<PlannedLink>> plan_links(const wire::Roster& roster, const WorldOptions& own, const Address& coordinator);

}  // namespace ringlet
