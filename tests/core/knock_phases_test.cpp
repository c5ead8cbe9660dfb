// Tests of both sides of a door at which processes knock, each by itself.
#include <catch2/catch.hpp>

#include "core/rendezvous/guest_entry.hpp"
#include "core/rendezvous/knocking.hpp"
#include "core/rendezvous/knocks.hpp"
#include "core/rendezvous/retry_pause.hpp"
#include "tests/core/phase_stage.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

struct DoorStage : Stage {
  Knocks knocks{node.loop(), {}, {}};

  DoorStage() : Stage(world_options(0, 1)) {
    knocks.open();
    listen([this](std::unique_ptr<Link> link) { knocks.receive(std::move(link)); });
  }
};

wire::Ticket ticket_for(std::uint32_t rank, std::uint32_t size) { return {rank, size, "", 4711, 3, 5, 0, 4000, 10'000}; }

/// A process that knocks at these doors.
struct KnockingStage {
  explicit KnockingStage(Stage& stage, std::vector<Address> doors) {
    Stage::Other& other = stage.add_other();
    knocking = std::make_unique<Knocking>(other.node->loop(), other.node->network(), *other.authenticator,
                                          KnockingOptions{std::move(doors), "somebody", Duration::seconds(30), {}},
                                          [this](Result<wire::Ticket> result) { answers.push_back(std::move(result)); });
  }

  std::vector<Result<wire::Ticket>> answers;
  std::unique_ptr<Knocking> knocking;
};

Address address_of(const Stage::Other& other) { return {other.node->host(), 5000}; }

}  // namespace

TEST_CASE("those who knock get tickets in the order in which they came") {
  DoorStage stage;
  Talker& first = stage.dial(wire::Knock{"first"});
  Talker& second = stage.dial(wire::Knock{"second"});
  Talker& third = stage.dial(wire::Knock{"third"});
  CHECK(stage.knocks.waiting() == 3);
  CHECK(stage.knocks.choose(2, [](const std::string&) { FAIL("nobody has gone"); }).processes == 2);
  CHECK(stage.knocks.waiting() == 1);
  stage.knocks.send_tickets(ticket_for(4, 6));
  stage.pass();
  REQUIRE(first.last<wire::Ticket>() != nullptr);
  CHECK(*first.last<wire::Ticket>() == ticket_for(4, 6));
  REQUIRE(second.last<wire::Ticket>() != nullptr);
  CHECK(*second.last<wire::Ticket>() == ticket_for(5, 6));
  stage.knocks.let_go();
  stage.pass();
  CHECK(first.ended);
  CHECK(second.ended);
  CHECK(third.heard.empty());
  CHECK_FALSE(third.ended);
  CHECK(stage.knocks.waiting() == 1);
}

TEST_CASE("a process that goes is forgotten, and told of where it was chosen") {
  DoorStage stage;
  stage.dial(wire::Knock{"early"});
  stage.others.back().talkers.clear();
  stage.pass();
  CHECK(stage.knocks.waiting() == 0);
  stage.dial(wire::Knock{"late"});
  std::vector<std::string> gone;
  CHECK(stage.knocks.choose(9, [&](const std::string& name) { gone.push_back(name); }).processes == 1);
  stage.others.back().talkers.clear();
  stage.pass();
  CHECK(gone == std::vector<std::string>{"late"});
}

TEST_CASE("a chosen process that is sent away is told of, too") {
  DoorStage stage;
  Talker& twice = stage.dial(wire::Knock{"twice"});
  std::vector<std::string> gone;
  CHECK(stage.knocks.choose(9, [&](const std::string& name) { gone.push_back(name); }).processes == 1);
  twice.send(wire::Knock{"twice"});
  stage.pass();
  REQUIRE(twice.last<wire::Abort>() != nullptr);
  CHECK_THAT(twice.last<wire::Abort>()->text, Contains("knocked twice"));
  CHECK(gone == std::vector<std::string>{"twice"});
}

TEST_CASE("whatever else is said at a door is answered with a sentence") {
  DoorStage stage;
  for (const wire::ControlMessage& message : {wire::ControlMessage(wire::Join{settings(1)}), wire::ControlMessage(wire::Ticket{})}) {
    Talker& lost = stage.dial(message);
    REQUIRE(lost.last<wire::Abort>() != nullptr);
    CHECK_THAT(lost.last<wire::Abort>()->text, Contains("this is the door of a group that runs"));
  }
  Talker& twice = stage.dial(wire::Knock{"twice"});
  twice.send(wire::Knock{"twice"});
  stage.pass();
  REQUIRE(twice.last<wire::Abort>() != nullptr);
  CHECK_THAT(twice.last<wire::Abort>()->text, Contains("knocked twice"));
  CHECK(stage.knocks.waiting() == 0);
  for (std::size_t i = 0; i < Knocks::kMaxWaiting; ++i) stage.dial(wire::Knock{"one of many"});
  CHECK(stage.knocks.waiting() == Knocks::kMaxWaiting);
  Talker& more = stage.dial(wire::Knock{"one more"});
  REQUIRE(more.last<wire::Abort>() != nullptr);
  CHECK_THAT(more.last<wire::Abort>()->text, Contains("64 processes wait"));
}

TEST_CASE("a process tries one door after the other, until there is one behind which a group runs") {
  DoorStage stage;
  DoorStage::Other& hangs = stage.add_listener();
  KnockingStage process(stage, {{stage.node.host(), 4999}, address_of(hangs), {stage.node.host(), 5000}});
  stage.pass(Duration::seconds(5));
  CHECK(process.answers.empty());
  CHECK(stage.knocks.waiting() == 0);
  REQUIRE(hangs.talkers.size() == 1);
  CHECK(std::get<wire::Knock>(hangs.talkers.front().heard.front()).name == "somebody");
  stage.pass(Duration::seconds(10));
  CHECK(hangs.talkers.front().ended);
  REQUIRE(stage.knocks.waiting() == 1);
  (void)stage.knocks.choose(1, [](const std::string&) {});
  stage.knocks.send_tickets(ticket_for(1, 2));
  stage.pass();
  REQUIRE(process.answers.size() == 1);
  wire::Ticket expected = ticket_for(1, 2);
  expected.host = stage.node.host();
  CHECK(process.answers.front().value() == expected);
}

TEST_CASE("two processes that only join do not wait for each other") {
  Stage stage(world_options(0, 1));
  Knocks closed(stage.node.loop(), {}, {});
  stage.listen([&](std::unique_ptr<Link> link) { closed.receive(std::move(link)); });
  KnockingStage process(stage, {{stage.node.host(), 5000}});
  stage.pass(Duration::seconds(40));
  REQUIRE(process.answers.size() == 1);
  CHECK(process.answers.front().status().code() == Errc::timed_out);
  CHECK_THAT(process.answers.front().status().text(), Contains("30000 ms") && Contains("is not in a group;"));
}

TEST_CASE("a door that is shut sends on those that wait and those that come, but not those that were chosen") {
  DoorStage stage;
  Talker& chosen = stage.dial(wire::Knock{"chosen"});
  (void)stage.knocks.choose(1, [](const std::string&) { FAIL("nobody has gone"); });
  Talker& waiting = stage.dial(wire::Knock{"waiting"});
  stage.knocks.shut();
  Talker& late = stage.dial(wire::Knock{"late"});
  for (Talker* sent_on : {&waiting, &late}) {
    REQUIRE(sent_on->last<wire::Abort>() != nullptr);
    CHECK_THAT(sent_on->last<wire::Abort>()->text, Contains("knock at another one"));
  }
  CHECK(stage.knocks.waiting() == 0);
  CHECK_FALSE(chosen.ended);
  stage.knocks.open();
  stage.dial(wire::Knock{"next"});
  CHECK(stage.knocks.waiting() == 1);
}

TEST_CASE("a ticket that makes no sense, another token and another version end the attempt") {
  wire::Ticket host = ticket_for(1, 2), rank = ticket_for(2, 2), port = ticket_for(1, 2), zero = ticket_for(0, 2);
  host.host = "not a host";
  port.port = 65'536;
  wire::Ticket silent = ticket_for(1, 2), crowded = ticket_for(1, 2);
  crowded.guests = 0xFFFF'FFFF;
  silent.heartbeat_timeout_ms = 0;
  for (const wire::Ticket& ticket : {host, rank, port, zero, silent, crowded}) {
    Stage stage(world_options(0, 1));
    Stage::Other& door = stage.add_listener();
    KnockingStage process(stage, {address_of(door)});
    stage.pass();
    REQUIRE(door.talkers.size() == 1);
    door.talkers.front().send(ticket);
    stage.pass();
    REQUIRE(process.answers.size() == 1);
    CHECK(process.answers.front().status().code() == Errc::protocol_error);
  }
  Stage stage(world_options(0, 1));
  KnockingStage process(stage, {address_of(stage.add_listener("another token of this test"))});
  stage.pass(Duration::seconds(2));
  REQUIRE(process.answers.size() == 1);
  CHECK(process.answers.front().status().code() == Errc::mismatch);
  CHECK_THAT(process.answers.front().status().text(), Contains("RINGLET_TOKEN"));
}

namespace {

std::size_t guests_of(const Knocks::Chosen& chosen) { return chosen.processes == 0 ? chosen.guests : 99; }
constexpr Duration kSoon = Duration::milliseconds(100);
void nobody_goes(const std::string& name) { FAIL(name << " has gone"); }

}  // namespace

TEST_CASE("guests are admitted together, once no other has come for a moment") {
  DoorStage stage;
  Talker& first = stage.dial(wire::SeatRequest{"first"}, kSoon);
  REQUIRE(first.last<wire::Welcome>() != nullptr);
  CHECK(stage.knocks.waiting() == 0);
  stage.pass(Duration::milliseconds(300));
  Talker& second = stage.dial(wire::SeatRequest{"second"}, kSoon);
  stage.pass(Duration::milliseconds(300));
  CHECK(stage.knocks.waiting() == 0);
  stage.pass(Duration::milliseconds(200));
  CHECK(stage.knocks.waiting() == 2);
  CHECK(guests_of(stage.knocks.choose(9, nobody_goes)) == 2);
  wire::Ticket ticket = ticket_for(3, 6);
  ticket.guests = 2;
  stage.knocks.send_tickets(ticket);
  stage.pass();
  for (Talker* guest : {&first, &second}) {
    REQUIRE(guest->last<wire::Ticket>() != nullptr);
    CHECK(guest->last<wire::Ticket>()->rank == 4);
  }
}

TEST_CASE("guests that gather yet come along where others are admitted, as at another rank's door") {
  DoorStage stage;
  stage.dial(wire::SeatRequest{"guest"}, kSoon);
  CHECK(stage.knocks.waiting() == 0);
  CHECK(guests_of(stage.knocks.choose(9, nobody_goes)) == 1);
}

TEST_CASE("guests do not wait for ever for others that come one by one") {
  DoorStage stage;
  for (int guest = 0; guest < 8; ++guest) {
    stage.dial(wire::SeatRequest{"one of many"}, Duration::milliseconds(400));
  }
  CHECK(stage.knocks.waiting() == 8);
}

TEST_CASE("a guest waits for those that have lost their group, which come in with it at once") {
  DoorStage stage;
  stage.dial(wire::SeatRequest{"new"});
  stage.pass(Duration::seconds(1));
  REQUIRE(stage.knocks.waiting() == 1);
  stage.knocks.expect_guests(2);
  CHECK(stage.knocks.waiting() == 0);
  stage.dial(wire::SeatRequest{"again"}, kSoon);
  CHECK(stage.knocks.waiting() == 0);
  stage.dial(wire::SeatRequest{"again, too"}, kSoon);
  CHECK(stage.knocks.waiting() == 3);
  // Where they do not come, nobody waits for them for long.
  CHECK(guests_of(stage.knocks.choose(9, nobody_goes)) == 3);
  stage.dial(wire::SeatRequest{"newer"}, kSoon);
  stage.knocks.expect_guests(2);
  stage.pass(Duration::seconds(1));
  CHECK(stage.knocks.waiting() == 1);
}

TEST_CASE("at a door that is shut a guest is sent away without a word") {
  DoorStage stage;
  Talker& waits = stage.dial(wire::SeatRequest{"waits"});
  stage.knocks.shut();
  Talker& comes = stage.dial(wire::SeatRequest{"comes"});
  stage.pass();
  for (Talker* guest : {&waits, &comes}) {
    CHECK(guest->last<wire::Abort>() == nullptr);
    CHECK(guest->ended);
  }
}

TEST_CASE("a guest asks again where a rank ends while it opens the connection, which looks like another token") {
  Stage stage(world_options(0, 1));
  Knocks knocks(stage.node.loop(), {}, {});
  knocks.open();
  stage.incoming.set_on_link([&](std::unique_ptr<Link> link) { knocks.receive(std::move(link)); });
  std::vector<std::unique_ptr<AcceptHandshake>> handshakes;
  int ends = 0;
  const int times = GENERATE(1, 2, 100);
  const auto accept = stage.incoming.acceptor();
  stage.listener =
      std::move(stage.node.network().listen({stage.node.host(), 5000}, [&](std::unique_ptr<Link> link) {
        if (++ends > times) return accept(std::move(link));
        auto& handshake = handshakes.emplace_back();
        handshake = std::make_unique<AcceptHandshake>(
            stage.node.loop(), std::move(link), ConstBytes{}, stage.authenticator,
            [&, at = handshakes.size() - 1](const LinkRequest&) { stage.node.loop().defer([&, at] { handshakes[at].reset(); }); },
            [](const Result<std::unique_ptr<Link>>&) {});
      })).value();
  Stage::Other& guest = stage.add_other();
  std::vector<Status> outcomes;
  GuestEntryOptions options;
  options.coordinator = {stage.node.host(), 5000};
  GuestEntry entry(guest.node->loop(), guest.node->network(), *guest.authenticator, options,
                   [&](const Result<GuestEntry::Entry>& seated) { outcomes.push_back(seated.status()); });
  stage.pass(Duration::seconds(3));
  if (times < kMaxRefusals) {
    CHECK(outcomes.empty());
    CHECK(knocks.waiting() == 1);
  } else {
    REQUIRE(outcomes.size() == 1);
    CHECK(outcomes.front().code() == Errc::mismatch);
    CHECK_THAT(outcomes.front().text(), Contains("tokens differ"));
    CHECK(ends == kMaxRefusals);
  }
}

TEST_CASE("a guest waits at the door without end, is led to the coordinator, and knocks again where that is gone") {
  DoorStage stage;
  Stage::Other& coordinator = stage.add_listener();
  Stage::Other& guest = stage.add_other();
  int waits = 0;
  std::vector<Status> outcomes;
  std::unique_ptr<Session> session;
  GuestEntryOptions options;
  options.coordinator = {stage.node.host(), 5000};
  options.name = "guest";
  options.timeout = Duration::seconds(5);
  options.on_waiting = [&] { ++waits; };
  auto entry = std::make_unique<GuestEntry>(guest.node->loop(), guest.node->network(), *guest.authenticator, options,
                                            [&](Result<GuestEntry::Entry>& seated) {
                                              outcomes.push_back(seated.status());
                                              if (!seated.ok()) return;
                                              CHECK(seated.value().elastic);
                                              CHECK(seated.value().coordinator == address_of(coordinator));
                                              CHECK(seated.value().seat.rank == 1);
                                              session = std::move(seated.value().session);
                                            });
  stage.pass(Duration::seconds(8));
  CHECK(waits == 1);
  REQUIRE(stage.knocks.waiting() == 1);

  // Nobody listens where the first ticket leads.
  std::vector<std::string> gone;
  const auto note = [&](const std::string& name) { gone.push_back(name); };
  CHECK(guests_of(stage.knocks.choose(1, note)) == 1);
  wire::Ticket ticket = ticket_for(1, 2);
  ticket.guests = 1;
  stage.knocks.send_tickets(ticket);
  stage.pass(Duration::seconds(2));
  REQUIRE(gone.size() == 1);
  CHECK_THAT(gone.front(), Contains("guest, "));
  stage.knocks.let_go();
  CHECK(waits == 2);
  REQUIRE(stage.knocks.waiting() == 1);

  CHECK(guests_of(stage.knocks.choose(1, note)) == 1);
  ticket.host = coordinator.node->host();
  ticket.port = 5000;
  stage.knocks.send_tickets(ticket);
  stage.pass();
  REQUIRE(coordinator.talkers.size() == 1);
  CHECK(coordinator.talkers.front().last<wire::SeatRequest>() != nullptr);
  wire::Seat seat;
  seat.rank = 1;
  seat.world_size = 2;
  seat.guests = 1;
  seat.heartbeat_timeout_ms = 4000;
  seat.wait_ms = 10'000;
  coordinator.talkers.front().send(seat);
  stage.pass();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes.front().ok());
  // The door knows that the guest lives until it is in.
  CHECK(gone.size() == 1);
  entry.reset();
  stage.pass();
  CHECK(gone.size() == 2);
  CHECK(waits == 2);
  if (session) session->close();
}
