// Tests of the phases of a meeting in which a rank admits others, each phase by itself.
#include <catch2/catch.hpp>

#include "core/rendezvous/admission.hpp"
#include "core/rendezvous/coordinator.hpp"
#include "core/rendezvous/link_measurement.hpp"
#include "tests/core/phase_stage.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

TEST_CASE("settings of ranks that do not belong together are told apart") {
  const WorldOptions own = world_options(0, 3, 1);
  CHECK(check_settings(settings(1, 3, 1), own).ok());
  CHECK(check_settings(settings(1, 4, 1), own).code() == Errc::mismatch);
  CHECK_THAT(check_settings(settings(1, 3, 0), own).text(), Contains("RINGLET_GUESTS"));
  CHECK(check_settings({3, 3, 1, 0}, own).code() == Errc::invalid_argument);
  CHECK(check_settings({4'000'000'000, 3, 1, 0}, own).code() == Errc::invalid_argument);
  CHECK(check_settings({4'000'000'000, 4, 1, 0}, own).rank() == 1 << 30);
  wire::RankSettings other = settings(1, 3, 1);
  other.policy = 99;
  CHECK_THAT(check_settings(other, own).text(), Contains("number 99") && Contains("RINGLET_PLACEMENT"));
  other.policy = 0;
  other.order = 1;
  CHECK_THAT(check_settings(other, own).text(),
             Contains("rank 1 adds in the order 'rank', rank 0 in the order 'any'") && Contains("RINGLET_ORDER"));
  other.order = 0;
  other.parts = 1;
  CHECK_THAT(check_settings(other, own).text(),
             Contains("rank 1 is set to the parts 'measured', rank 0 to 'even'") && Contains("RINGLET_PARTS"));
  other.policy = 99;
  other.order = 99;
  other.parts = 99;
  // Those of a guest are not compared, since a guest has none of its own.
  other.rank = 2;
  CHECK(check_settings(other, own).ok());
}

TEST_CASE("a candidate's probes are answered, one nomination is accepted, and only then a confirmation") {
  using Kind = CandidateResponder::Reaction::Kind;
  const wire::LinkProbe probe{0, false, std::string(LinkMeasurement::kPadding, 'x')};
  const wire::Nominate nomination{wire::Path{"eth0", "eth1"}};
  CandidateResponder good(0, 2);
  for (std::size_t i = 0; i < LinkMeasurement::kProbes; ++i) {
    const auto reaction = good.on_message(probe);
    CHECK(reaction.kind == Kind::answer);
    CHECK(reaction.answer == wire::ControlMessage(wire::LinkProbe{0, true, probe.padding}));
  }
  CHECK(good.on_message(nomination).answer == wire::ControlMessage(wire::Welcome{0}));
  CHECK(good.path() == nomination.path);
  CHECK(good.on_message(wire::Welcome{2}).kind == Kind::confirmed);

  CHECK(good.on_message(nomination).kind == Kind::violation);
  CHECK(good.on_message(probe).kind == Kind::violation);
  CandidateResponder fresh(0, 2);
  CHECK(fresh.on_message(wire::Welcome{2}).kind == Kind::violation);
  CHECK(fresh.on_message(wire::LinkProbe{0, true, {}}).kind == Kind::violation);
  CHECK(fresh.on_message(wire::LinkProbe{0, false, probe.padding + "x"}).kind == Kind::violation);
  CHECK(fresh.on_message(wire::Join{}).kind == Kind::violation);
  CHECK(fresh.on_message(nomination).kind == Kind::answer);
  CHECK(fresh.on_message(wire::Welcome{1}).kind == Kind::violation);
}

TEST_CASE("a rank that connects is admitted once the world's number is known, and must have the same") {
  Stage stage(world_options(0, 3));
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, nullptr, {}, stage.count_changes());
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });
  Talker& early = stage.dial(wire::Connect{settings(1), 77});
  CHECK(early.heard.empty());
  CHECK_FALSE(stage.world.has_session(1));
  admission.set_world_id(77);
  stage.pass();
  CHECK(stage.world.has_session(1));
  CHECK(stage.links.has(1));
  CHECK(stage.changes == 1);
  REQUIRE(early.last<wire::Welcome>() != nullptr);

  Talker& twin = stage.dial(wire::Connect{settings(1), 77});
  REQUIRE(twin.last<wire::Abort>() != nullptr);
  CHECK_THAT(twin.last<wire::Abort>()->text, Contains("rank 1 is already there"));
  Talker& stranger = stage.dial(wire::Connect{settings(2), 78});
  REQUIRE(stranger.last<wire::Abort>() != nullptr);
  CHECK_THAT(stranger.last<wire::Abort>()->text, Contains("another world"));
  CHECK(stage.world.failure().ok());
  // A different world size is a mistake of the person who started the ranks, so it ends the world.
  stage.dial(wire::Connect{settings(2, 4), 77});
  CHECK(stage.world.failure().code() == Errc::mismatch);
}

TEST_CASE("peers that begin with anything else are dropped, and admit nobody") {
  Stage stage(world_options(0, 3));
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, nullptr, {true, 77}, stage.count_changes());
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });
  for (const wire::ControlMessage& message : {wire::ControlMessage(wire::Welcome{1}), wire::ControlMessage(wire::Ready{}),
                                              wire::ControlMessage(wire::Nominate{}), wire::ControlMessage(wire::Roster{})}) {
    Talker& talker = stage.dial(message);
    CHECK(talker.ended);
    CHECK(talker.heard.empty());
  }
  CHECK_THAT(stage.dial(wire::SeatRequest{"guest"}).last<wire::Abort>()->text, Contains("guests get their seat from rank 0"));
  CHECK_THAT(stage.dial(wire::Join{settings(1), "", 5000}).last<wire::Abort>()->text, Contains("not the coordinator"));
  CHECK_THAT(stage.dial(wire::Propose{settings(2), 77, 1}).last<wire::Abort>()->text, Contains("at this address is rank 0"));
  CHECK(stage.changes == 0);
  CHECK(stage.world.failure().ok());
}

TEST_CASE("when admission ends, peers that wait and peers that come are told the reason") {
  Stage stage(world_options(0, 3));
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, nullptr, {}, stage.count_changes());
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });
  Talker& waiting = stage.dial(wire::Connect{settings(1), 77});
  const bool told = GENERATE(true, false);
  told ? admission.refuse_all({Errc::invalid_argument, "closed"}) : admission.drop_all();
  Talker& late = stage.dial(wire::Connect{settings(2), 77});
  stage.pass(Duration::seconds(2));
  for (const Talker* talker : {&waiting, &late}) {
    CHECK(talker->ended);
    CHECK(talker->heard.size() == (told ? 1u : 0u));
    if (told) CHECK(talker->last<wire::Abort>()->text == "closed");
  }
}

TEST_CASE("the coordinator gives seats to guests, says how many are there, and the roster when all are") {
  Stage stage(world_options(0, 3, 1));
  CoordinatorOptions options;
  options.world_id = 77;
  options.natives_join = true;
  options.known = {{0, stage.node.host(), 5000}};
  std::vector<std::string> names;
  options.on_guests = [&](const std::vector<std::string>& now) { names = now; };
  Coordinator* updated = nullptr;
  Coordinator coordinator(stage.node.loop(), stage.world, stage.links, options, [&] { updated->update(); });
  updated = &coordinator;
  Admission admission(stage.node.loop(), stage.world, stage.links, stage.closing, &coordinator, {true, 77}, [&] { coordinator.update(); });
  stage.listen([&](std::unique_ptr<Link> link) { admission.receive(std::move(link)); });

  Talker& guest = stage.dial(wire::SeatRequest{"phone"});
  REQUIRE(guest.last<wire::Seat>() != nullptr);
  CHECK(guest.last<wire::Seat>()->rank == 2);
  CHECK(guest.last<wire::Seat>()->present == 2);
  CHECK(coordinator.guests_here() == 1);
  REQUIRE(names.size() == 1);
  CHECK_THAT(names[0], Contains("phone"));
  CHECK_THAT(stage.dial(wire::SeatRequest{"tablet"}).last<wire::Abort>()->text, Contains("all seats for guests are taken"));

  Talker& native = stage.dial(wire::Join{settings(1, 3, 1), "", 4711});
  for (const Talker* talker : {&guest, &native}) {
    REQUIRE(talker->last<wire::Roster>() != nullptr);
    const wire::Roster& roster = *talker->last<wire::Roster>();
    CHECK(roster.world_id == 77);
    REQUIRE(roster.members.size() == 3);
    CHECK(roster.members[0].host == stage.node.host());
    CHECK(roster.members[1].port == 4711);
    CHECK(roster.members[2].host.empty());
    CHECK_THAT(roster.members[2].name, Contains("phone"));
  }
  CHECK_FALSE(coordinator.awaits_guests());
  CHECK(stage.links.complete());
  CHECK(stage.world.has_session(2));
}
