#include "core/rendezvous/rank_settings.hpp"

#include <algorithm>
#include <string>

#include "core/base/rank_text.hpp"

namespace ringlet {

namespace {

template <class Value>
std::string choice_text(std::uint32_t number, std::size_t count) {
  if (number >= count) return "number " + std::to_string(number);
  return "'" + std::string(name_of(static_cast<Value>(number))) + "'";
}

std::string policy_text(std::uint32_t policy) { return choice_text<PlacementPolicy>(policy, kPlacementPolicyCount); }
std::string parts_text(std::uint32_t parts) { return choice_text<PartsPolicy>(parts, kPartsPolicyCount); }
std::string order_text(std::uint32_t order) { return choice_text<ReduceOrder>(order, kReduceOrderCount); }

}  // namespace

wire::RankSettings settings_of(const WorldOptions& own) {
  wire::RankSettings settings;
  settings.rank = static_cast<std::uint32_t>(own.rank);
  settings.world_size = static_cast<std::uint32_t>(own.size);
  settings.guests = static_cast<std::uint32_t>(own.guests);
  settings.elastic = own.elastic;
  if (own.is_guest(own.rank)) return settings;
  settings.policy = static_cast<std::uint32_t>(own.placement.policy);
  settings.order = static_cast<std::uint32_t>(own.placement.order);
  settings.parts = static_cast<std::uint32_t>(own.placement.parts);
  return settings;
}

Status check_settings(const wire::RankSettings& theirs, const WorldOptions& own) {
  const std::string they = rank_text(theirs.rank), self = rank_text(own.rank);
  if (theirs.world_size != static_cast<std::uint32_t>(own.size))
    return {Errc::mismatch,
            they + " was started for a world of " + std::to_string(theirs.world_size) + " ranks, " + self + " for one of " +
                std::to_string(own.size) + "; give all ranks the same world size",
            static_cast<int>(std::min<std::uint32_t>(theirs.rank, 1u << 30))};
  if (theirs.rank >= theirs.world_size)
    return {Errc::invalid_argument,
            they + " does not exist in a world of " + std::to_string(theirs.world_size) + " ranks, which are numbered from 0"};
  const int rank = static_cast<int>(theirs.rank);
  if (theirs.guests != static_cast<std::uint32_t>(own.guests))
    return {Errc::mismatch,
            they + " was started for " + std::to_string(theirs.guests) + " guests, " + self + " for " + std::to_string(own.guests) +
                "; give all ranks the same (RINGLET_GUESTS, or the option guests)",
            rank};
  // A guest's world is not elastic: it joins the next epoch anew.
  if (theirs.elastic != own.elastic && !own.is_guest(rank))
    return {Errc::mismatch,
            they + " is " + (theirs.elastic ? "" : "not ") + "elastic, " + self + " is" + (own.elastic ? "" : " not") +
                "; give all ranks the same (RINGLET_ELASTIC, or the option elastic)",
            rank};
  const auto policy = static_cast<std::uint32_t>(own.placement.policy);
  if (theirs.policy != policy && !own.is_guest(rank))
    return {Errc::mismatch,
            they + " has the placement " + policy_text(theirs.policy) + ", " + self + " " + policy_text(policy) +
                "; give all ranks the same (RINGLET_PLACEMENT)",
            rank};
  const auto order = static_cast<std::uint32_t>(own.placement.order);
  if (theirs.order != order && !own.is_guest(rank))
    return {Errc::mismatch,
            they + " adds in the order " + order_text(theirs.order) + ", " + self + " in the order " + order_text(order) +
                "; give all ranks the same (RINGLET_ORDER, or the option order)",
            rank};
  const auto parts = static_cast<std::uint32_t>(own.placement.parts);
  if (theirs.parts != parts && !own.is_guest(rank))
    return {Errc::mismatch,
            they + " is set to the parts " + parts_text(theirs.parts) + ", " + self + " to " + parts_text(parts) +
                "; give all ranks the same (RINGLET_PARTS, or the option parts)",
            rank};
  return {};
}

}  // namespace ringlet
