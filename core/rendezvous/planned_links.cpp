#include "core/rendezvous/planned_links.hpp"

#include <utility>

#include "core/base/rank_text.hpp"
#include "core/rendezvous/path_choice.hpp"

namespace ringlet {

namespace {

/// Where each native rank can be dialled, by rank. Rank 0 has no targets where the present link with it is kept.
std::vector<std::vector<wire::Endpoint>> targets_by_rank(const wire::Roster& roster, const WorldOptions& own, const Address& coordinator) {
  const bool guest = own.is_guest(own.rank);
  std::vector<std::vector<wire::Endpoint>> targets(static_cast<std::size_t>(own.natives()));
  if (guest) targets[0] = {{coordinator.host, coordinator.port}};
  for (wire::Member member : roster.members) {
    if (member.rank >= targets.size()) continue;
    if (member.rank == 0 && (guest || !is_worth_a_race(member))) continue;
    // A guest dials only one address of each rank.
    if (guest) member.endpoints.clear();
    // A rank with a loopback address is on the coordinator's machine.
    if (is_loopback({member.host, 0})) member.host = coordinator.host;
    targets[member.rank] = targets_of(member);
  }
  return targets;
}

}  // namespace

std::vector<PlannedLink> plan_links(std::span<const std::vector<Address>> addresses_by_rank, int own_rank) {
  std::vector<PlannedLink> plan;
  for (int peer = 0; peer < own_rank; ++peer) {
    wire::Member member;
    for (const Address& address : addresses_by_rank[static_cast<std::size_t>(peer)])
      member.endpoints.push_back({address.host, address.port});
    plan.push_back({peer, false, targets_of(member)});
  }
  return plan;
}

Result<std::vector<PlannedLink>> plan_links(const wire::Roster& roster, const WorldOptions& own, const Address& coordinator) {
  const bool guest = own.is_guest(own.rank);
  const auto targets = targets_by_rank(roster, own, coordinator);
  std::vector<PlannedLink> plan;
  if (!guest && !targets[0].empty()) plan.push_back({0, false, targets[0]});
  for (int peer = 1; peer < (guest ? own.size : own.rank); ++peer) {
    if (peer == own.rank) continue;
    const bool relayed = own.is_relayed(own.rank, peer);
    const int reached = relayed ? own.relay_of(own.rank, peer) : peer;
    const auto& known = targets[static_cast<std::size_t>(reached)];
    if (known.empty()) return Status(Errc::protocol_error, "the coordinator's roster does not have " + rank_text(reached), 0);
    plan.push_back({peer, relayed, guest ? std::vector(known.begin(), known.begin() + 1) : known});
  }
  return plan;
}

}  // namespace ringlet
