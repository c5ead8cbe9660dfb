#include "core/elastic/growth.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace ringlet {

void GrowthProgress::met() {
  if (state_ == GrowthState::forming) state_ = GrowthState::ready;
}

GrowthStanding standing_of(GrowthState state, bool somebody_knocks) {
  switch (state) {
    case GrowthState::failed:
      return GrowthStanding::failed;
    case GrowthState::forming:
      return GrowthStanding::forming;
    case GrowthState::ready:
      return GrowthStanding::ready;
    case GrowthState::none:
      break;
  }
  return somebody_knocks ? GrowthStanding::knocked : GrowthStanding::idle;
}

GrowthStep step_of(GrowthStanding least) {
  switch (least) {
    case GrowthStanding::failed:
      return GrowthStep::give_up;
    case GrowthStanding::ready:
      return GrowthStep::enter;
    case GrowthStanding::knocked:
      return GrowthStep::begin;
    case GrowthStanding::forming:
    case GrowthStanding::idle:
      break;
  }
  return GrowthStep::none;
}

int most_to_choose(int size, int largest_size) { return (largest_size - size) / size; }

Result<std::optional<GrowthPlan>> plan_growth(std::span<const GrowthShare> chosen, int own_rank, int largest_size) {
  const int most = most_to_choose(static_cast<int>(chosen.size()), largest_size);
  GrowthPlan plan;
  plan.first_process = static_cast<int>(chosen.size());
  for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
    const auto [processes, guests] = chosen[rank];
    if (processes < 0 || guests < 0 || processes > most || guests > most - processes)
      return Status(Errc::protocol_error,
                    "rank " + std::to_string(rank) + " lets " + std::to_string(processes) + " processes and " + std::to_string(guests) +
                        " guests in, where " + std::to_string(most) + " in all are possible",
                    static_cast<int>(rank));
    if (rank < static_cast<std::size_t>(own_rank)) plan.first_process += processes;
    plan.processes += processes;
    plan.guests += guests;
  }
  if (plan.processes + plan.guests == 0) return std::optional<GrowthPlan>();
  return std::optional(plan);
}

WorldOptions options_of_next(const WorldOptions& present, const GrowthPlan& plan) {
  WorldOptions next = present;
  next.size = present.size + plan.processes + plan.guests;
  next.guests = plan.guests;
  next.joined = plan.processes;
  ++next.epoch;
  // The ranks of the next world find out anew.
  next.machines.clear();
  next.speeds.clear();
  return next;
}

wire::Ticket ticket_to(const WorldOptions& next, const GrowthPlan& plan, const Address& coordinator, std::uint64_t lineage, Duration wait) {
  wire::Ticket ticket;
  ticket.rank = static_cast<std::uint32_t>(plan.first_process);
  ticket.members = static_cast<std::uint32_t>(next.size - plan.processes - plan.guests);
  ticket.world_size = static_cast<std::uint32_t>(next.size);
  // Who has reached the door of rank 0, or of another rank of its machine, reaches its coordinator at the same host.
  if (next.rank != 0 && !is_loopback(coordinator)) ticket.host = coordinator.host;
  ticket.port = coordinator.port;
  ticket.epoch = next.epoch;
  ticket.lineage = lineage;
  ticket.policy = static_cast<std::uint32_t>(next.placement.policy);
  ticket.order = static_cast<std::uint32_t>(next.placement.order);
  ticket.parts = static_cast<std::uint32_t>(next.placement.parts);
  ticket.heartbeat_timeout_ms = static_cast<std::uint32_t>(next.heartbeat_timeout.whole_milliseconds());
  ticket.wait_ms = static_cast<std::uint32_t>(wait.whole_milliseconds());
  ticket.guests = static_cast<std::uint32_t>(next.guests);
  return ticket;
}

Status use_ticket(const wire::Ticket& ticket, int largest_size, WorldOptions& options) {
  if (ticket.world_size > static_cast<std::uint32_t>(largest_size) || ticket.policy >= kPlacementPolicyCount ||
      ticket.order >= kReduceOrderCount || ticket.parts >= kPartsPolicyCount || ticket.page_port > 65'535)
    return {Errc::protocol_error, "the group gives this process rank " + std::to_string(ticket.rank) + " of " +
                                      std::to_string(ticket.world_size) + " with the placement policy " + std::to_string(ticket.policy) +
                                      ", the order " + std::to_string(ticket.order) + " and the parts " + std::to_string(ticket.parts) +
                                      ", which this version does not know"};
  options.rank = static_cast<int>(ticket.rank);
  options.size = static_cast<int>(ticket.world_size);
  options.epoch = ticket.epoch;
  options.guests = static_cast<int>(ticket.guests);
  options.joined = options.natives() - static_cast<int>(ticket.members);
  options.heartbeat_timeout = Duration::milliseconds(ticket.heartbeat_timeout_ms);
  options.placement.policy = static_cast<PlacementPolicy>(ticket.policy);
  options.placement.order = static_cast<ReduceOrder>(ticket.order);
  options.placement.parts = static_cast<PartsPolicy>(ticket.parts);
  return {};
}

bool is_among_members(std::span<const int> goes_on, const wire::Ticket& ticket) {
  return std::any_of(goes_on.begin(), goes_on.end(), [&](int rank) { return rank < static_cast<int>(ticket.members); });
}

WorldSwitch::Step WorldSwitch::next(Entry entry, bool failed) {
  if (entry == Entry::all_are_in) return Step::leave;
  if (entry == Entry::awaited) return helps_ && failed ? Step::help : Step::wait;
  if (!helps_ || has_helped_) return Step::leave;
  // Somebody may still be in agree() there.
  return std::exchange(has_ended_, true) ? Step::help : Step::end_before;
}

}  // namespace ringlet
