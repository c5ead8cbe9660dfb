// Tests of what decides how a group grows, and who gives whom the state.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "core/elastic/growth.hpp"
#include "core/elastic/hand_over.hpp"

using namespace ringlet;

namespace {

GrowthStep step_of_all(const std::vector<GrowthStanding>& all) { return step_of(*std::min_element(all.begin(), all.end())); }

}  // namespace

TEST_CASE("one rank's failure ends a growth for all, and none switches before all are ready") {
  const GrowthStanding failed = standing_of(GrowthState::failed, true), forming = standing_of(GrowthState::forming, true);
  const GrowthStanding ready = standing_of(GrowthState::ready, true);
  const GrowthStanding knocked = standing_of(GrowthState::none, true), idle = standing_of(GrowthState::none, false);
  CHECK(step_of_all({ready, failed, forming}) == GrowthStep::give_up);
  CHECK(step_of_all({ready, forming, ready}) == GrowthStep::none);
  CHECK(step_of_all({ready, ready}) == GrowthStep::enter);
  CHECK(step_of_all({idle, knocked, idle}) == GrowthStep::begin);
  CHECK(step_of_all({idle, idle}) == GrowthStep::none);
}

TEST_CASE("a part that has failed stays so when its ranks have met after all") {
  GrowthProgress part;
  CHECK(part.state() == GrowthState::forming);
  part.fail();
  part.met();
  CHECK(part.state() == GrowthState::failed);
  GrowthProgress other;
  other.met();
  CHECK(other.state() == GrowthState::ready);
  other.fail();
  CHECK(other.state() == GrowthState::failed);
}

TEST_CASE("the present ranks stay, and those that join follow by the doors at which they knock") {
  const std::vector<GrowthShare> chosen{{1, 0}, {0, 2}, {3, 1}};
  WorldOptions present;
  present.size = 3;
  present.epoch = 6;
  const std::vector<int> first{3, 4, 4};
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const auto plan = plan_growth(chosen, rank, 100).value();
    REQUIRE(plan.has_value());
    CHECK(plan->first_process == first[static_cast<std::size_t>(rank)]);
    present.rank = rank;
    present.placement.order = rank == 1 ? ReduceOrder::rank : ReduceOrder::any;
    const WorldOptions next = options_of_next(present, *plan);
    CHECK((next.rank == rank && next.size == 10 && next.guests == 3 && next.epoch == 7));
    const wire::Ticket ticket = ticket_to(next, *plan, {"10.0.0.1", 4711}, 5, Duration::seconds(10));
    CHECK((ticket.members == 3 && ticket.guests == 3 && ticket.lineage == 5 && ticket.port == 4711));
    CHECK(ticket.host == (rank == 0 ? "" : "10.0.0.1"));
    WorldOptions own;
    CHECK(use_ticket(ticket, 10, own).ok());
    CHECK((own.rank == static_cast<int>(ticket.rank) && own.size == 10 && own.guests == 3 && own.epoch == 7));
    CHECK(own.placement.order == present.placement.order);
    CHECK(use_ticket(ticket, 9, own).code() == Errc::protocol_error);
    wire::Ticket later = ticket;
    later.order = kReduceOrderCount;
    CHECK(use_ticket(later, 10, own).code() == Errc::protocol_error);
  }
  CHECK_FALSE(plan_growth(std::vector<GrowthShare>(3), 0, 100).value().has_value());
}

TEST_CASE("a rank that lets in more than it may, or fewer than none, is blamed") {
  REQUIRE(most_to_choose(2, 12) == 5);
  const auto plan_of = [](GrowthShare share) { return plan_growth(std::vector<GrowthShare>{{1, 0}, share}, 0, 12); };
  CHECK(plan_of({2, 3}).ok());
  for (const GrowthShare share : {GrowthShare{-5, 0}, {0, -1}, {6, 0}, {0, 6}, {3, 3}, {INT32_MAX, INT32_MAX}, {INT32_MIN, 1}}) {
    CAPTURE(share.processes, share.guests);
    const auto plan = plan_of(share);
    REQUIRE_FALSE(plan.ok());
    CHECK((plan.status().code() == Errc::protocol_error && plan.status().rank() == 1));
  }
}

TEST_CASE("a process that joins is in where one that was there before goes on with it") {
  wire::Ticket ticket;
  ticket.members = 2;
  CHECK(is_among_members(std::vector{1, 2, 3}, ticket));
  CHECK_FALSE(is_among_members(std::vector{2, 3}, ticket));
}

TEST_CASE("who has switched helps those that lost a rank in agree() until all are in, and leaves then") {
  using Step = WorldSwitch::Step;
  using Entry = WorldSwitch::Entry;
  WorldSwitch switching(true);
  CHECK(switching.next(Entry::awaited, false) == Step::wait);
  CHECK(switching.next(Entry::awaited, true) == Step::help);
  switching.helped();
  CHECK(switching.next(Entry::awaited, true) == Step::help);
  switching.cannot_help();
  CHECK(switching.next(Entry::awaited, true) == Step::wait);
  CHECK(switching.next(Entry::all_are_in, true) == Step::leave);
}

TEST_CASE("where not all have come in, the world before is ended, so that nobody waits there") {
  using Step = WorldSwitch::Step;
  WorldSwitch switching(true);
  CHECK(switching.next(WorldSwitch::Entry::has_failed, false) == Step::end_before);
  CHECK(switching.next(WorldSwitch::Entry::has_failed, true) == Step::help);
  switching.helped();
  CHECK(switching.next(WorldSwitch::Entry::has_failed, false) == Step::leave);
  CHECK(WorldSwitch(false).next(WorldSwitch::Entry::has_failed, true) == Step::leave);
}

TEST_CASE("those with the most steps give their state, and all others take it; a guest never gives") {
  const Checksum::Value old{1, 0}, newest{2, 1}, other{2, 2};
  const std::vector<Standing> standings{{true, 9, {}},      {false, 3, old},   {false, 4, newest}, {false, 4, other},
                                        {false, 4, newest}, {false, 7, other}, {false, 4, newest}};
  const HandOver plan = plan_hand_over(standings, 5);
  CHECK((plan.step == 4 && plan.checksum == newest));
  CHECK(plan.givers == std::vector{2, 4});
  CHECK(plan.takers == std::vector{0, 1, 3, 5});
  CHECK((plan.giver_of(0) == 2 && plan.giver_of(1) == 4 && plan.giver_of(2) == 2));
  CHECK(plan_hand_over(std::vector<Standing>{{true, 1, {}}, {true, 2, {}}, {false, 3, old}}, 2).givers.empty());
}

TEST_CASE("whose plan differs: among those who train first, then among those who have joined") {
  const auto difference = [](const std::vector<EntryStanding>& all) {
    const auto found = compare_settings(all);
    return found ? std::pair(found->other, found->rank) : std::pair(-1, -1);
  };
  const TrainingSettings plan{9, 4, 0, 0}, longer{10, 4, 0, 0}, larger{9, 5, 0, 0}, saving{9, 4, 3, 2};
  CHECK(difference({{false, 0, 0, plan}, {true, 5, 4, plan}}) == std::pair(-1, -1));
  CHECK(difference({{true, 5, 4, plan}, {true, 5, 4, plan}, {false, 0, 0, plan}, {false, 0, 0, larger}}) == std::pair(0, 3));
  CHECK(difference({{false, 0, 0, saving}, {true, 5, 4, plan}, {false, 0, 0, longer}}) == std::pair(1, 0));
  CHECK(difference({{false, 0, 0, plan}, {false, 0, 0, plan}, {false, 0, 0, saving}}) == std::pair(0, 2));
  CHECK(difference({{true, 5, 4, plan}, {false, 0, 0, longer}, {true, 5, 4, longer}}) == std::pair(0, 2));
}

TEST_CASE("nothing is handed over where all are settled at one step") {
  const std::vector<EntryStanding> same{{true, 5, 4}, {true, 5, 2}}, one_new{{true, 5, 4}, {false, 5, 0}},
      behind{{true, 5, 4}, {true, 4, 4}};
  CHECK(compare_standings(same).is_same);
  CHECK(compare_standings(same).saved_by_all == 2);
  CHECK_FALSE(compare_standings(behind).is_same);
  const StateComparison comparison = compare_standings(one_new);
  CHECK_FALSE(comparison.is_same);
  CHECK((comparison.one_is_settled && comparison.saved_by_all == 4));
}
