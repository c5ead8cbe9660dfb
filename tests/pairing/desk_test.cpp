#include "tools/pairing/pairing_desk.hpp"

#include <catch2/catch.hpp>

#include "tests/pairing/talk.hpp"

using namespace ringlet;
using namespace ringlet::pairing;
using namespace ringlet::test;
using State = PairingDesk::State;

namespace {

const std::string kToken = "2k4x-the-token-of-the-group";

class World {
 public:
  World() : desk({.group = "home", .name = "attic", .machine_key = std::string(kMachineKeyBytes, 'h')}, Secret(kToken), fill_random, now) {}

  /// A newcomer who was told this code.
  struct Newcomer {
    explicit Newcomer(std::string_view typed) : code(typed) {}
    Secret code;
    NewcomerSession session{"home", {"cellar", std::string(kMachineKeyBytes, 'n')}, code};
    PairingDesk::Id id = 0;
  };
  std::unique_ptr<Newcomer> enter(std::string_view code, const std::string& address = "10.0.0.2") {
    const auto id = desk.admit(address, now);
    if (!id) return nullptr;
    auto newcomer = std::make_unique<Newcomer>(code);
    newcomer->id = *id;
    return newcomer;
  }
  /// Gives the desk what the newcomer sends, and the newcomer the desk's answer.
  void exchange(Newcomer& newcomer) {
    desk.receive(newcomer.id, bytes_of(newcomer.session.take_outgoing()), now);
    newcomer.session.receive(bytes_of(desk.take_outgoing(newcomer.id)));
  }
  std::string code() const { return std::string(desk.code().view()); }
  std::string wrong_code() const { return code() == "00000000" ? "00000001" : "00000000"; }
  void guess_wrong() {
    const auto rogue = enter(wrong_code());
    REQUIRE(rogue);
    exchange(*rogue);
    exchange(*rogue);
    CHECK(rogue->session.stage() == NewcomerSession::Stage::wrong_code);
  }
  void pass(Duration time) {
    now = now + time;
    desk.advance(now);
  }

  Instant now{1'000'000'000};
  PairingDesk desk;
};

}  // namespace

TEST_CASE("the desk pairs one newcomer, and is over") {
  World world;
  const auto newcomer = world.enter(world.code());
  world.exchange(*newcomer);
  CHECK(world.desk.state() == State::shows_code);
  world.exchange(*newcomer);
  CHECK(world.desk.state() == State::hands_out);
  CHECK_FALSE(world.desk.admit("10.0.0.3", world.now));
  CHECK(newcomer->session.token().view() == kToken);
  newcomer->session.confirm();
  world.exchange(*newcomer);
  CHECK(world.desk.state() == State::paired);
  CHECK(world.desk.newcomer() == PairedMachine{"cellar", std::string(kMachineKeyBytes, 'n')});
  CHECK_FALSE(world.desk.next_deadline());
}

TEST_CASE("a wrong code is void also for those in the midst of it, and after a pause there is another") {
  World world;
  const std::string before = world.code();
  const auto honest = world.enter(before), late = world.enter(before, "10.0.0.3");
  world.exchange(*honest);
  world.exchange(*late);
  world.pass(Duration::milliseconds(10));
  const auto rogue = world.enter(world.wrong_code(), "10.0.0.4");
  world.exchange(*rogue);
  world.exchange(*rogue);
  CHECK(rogue->session.stage() == NewcomerSession::Stage::wrong_code);
  CHECK(world.desk.state() == State::pauses);
  CHECK_FALSE(world.desk.has(honest->id));
  CHECK_FALSE(world.enter(before));
  world.exchange(*honest);
  CHECK(honest->session.token().empty());

  world.pass(Duration::milliseconds(999));
  CHECK(world.desk.state() == State::pauses);
  world.pass(Duration::milliseconds(1));
  CHECK(world.desk.state() == State::shows_code);
  CHECK(world.desk.codes() == 2);
  CHECK(world.code() != before);
  // The old code is no longer accepted.
  const auto slow = world.enter(before);
  world.exchange(*slow);
  world.exchange(*slow);
  CHECK(slow->session.stage() == NewcomerSession::Stage::wrong_code);
}

TEST_CASE("pauses grow, and after three wrong codes it is over") {
  World world;
  for (int wrong = 1; wrong <= 3; ++wrong) {
    CHECK(world.desk.state() == State::shows_code);
    world.guess_wrong();
    CHECK(world.desk.wrong_codes() == wrong);
    if (wrong == 3) break;
    CHECK(world.desk.state() == State::pauses);
    CHECK(world.desk.pause() == Duration::seconds(1 << (wrong - 1)));
    world.pass(world.desk.pause());
  }
  CHECK(world.desk.state() == State::gave_up);
  world.pass(Duration::seconds(3'600));
  CHECK_FALSE(world.enter(world.code()));
  CHECK(world.desk.state() == State::gave_up);
}

TEST_CASE("of two who know the code the first to prove it gets the token") {
  World world;
  const auto first = world.enter(world.code()), second = world.enter(world.code(), "10.0.0.3");
  world.exchange(*first);
  world.exchange(*second);
  world.exchange(*second);
  CHECK(second->session.token().view() == kToken);
  world.exchange(*first);
  CHECK(first->session.token().empty());
  CHECK_FALSE(world.desk.has(first->id));
  second->session.confirm();
  world.exchange(*second);
  CHECK(world.desk.state() == State::paired);
}

TEST_CASE("an expired code does not pair, even where its conversation has begun") {
  World world;
  world.pass(Duration::seconds(119));
  const auto newcomer = world.enter(world.code());
  world.exchange(*newcomer);
  world.now = world.now + Duration::seconds(1);  // the desk has not been told the time
  world.exchange(*newcomer);
  CHECK(world.desk.state() == State::expired);
  CHECK(newcomer->session.token().empty());
  CHECK_FALSE(world.enter(world.code()));
}

TEST_CASE("conversations are bounded in number and time, and those that guess nothing cost no code") {
  World world;
  const std::string code = world.code();
  const auto one = world.enter(code), two = world.enter(code);
  CHECK_FALSE(world.enter(code));
  const auto three = world.enter(code, "10.0.0.3"), four = world.enter(code, "10.0.0.4");
  CHECK_FALSE(world.enter(code, "10.0.0.5"));
  world.exchange(*one);
  world.desk.leave(two->id, world.now);
  CHECK(world.enter(code));
  CHECK(world.desk.next_deadline() == world.now + Duration::seconds(10));
  world.pass(Duration::seconds(10));
  for (const auto& newcomer : {one.get(), three.get(), four.get()}) CHECK_FALSE(world.desk.has(newcomer->id));
  for (int i = 0; i < 50; ++i) {
    world.pass(Duration::milliseconds(250));
    const auto id = world.desk.admit("10.0.0.6", world.now);
    REQUIRE(id);
    world.desk.receive(*id, bytes_of("no such protocol"), world.now);
    CHECK_FALSE(world.desk.has(*id));
  }
  CHECK(world.desk.wrong_codes() == 0);
  CHECK(world.code() == code);
}

TEST_CASE("so many conversations may begin within a second, of one address and of all") {
  World world;
  const auto enter_and_go = [&](const std::string& address) {
    const auto id = world.desk.admit(address, world.now);
    if (id) world.desk.leave(*id, world.now);
    return id.has_value();
  };
  for (int round = 0; round < 2; ++round) {
    for (int host = 1; host <= 4; ++host)
      for (int i = 1; i <= 100; ++i) CHECK(enter_and_go("10.0.0." + std::to_string(host)) == (i <= 4));
    CHECK_FALSE(enter_and_go("10.0.0.5"));
    world.pass(Duration::seconds(1));
  }
  CHECK(enter_and_go("10.0.0.5"));
  CHECK(world.desk.state() == State::shows_code);
}

TEST_CASE("a newcomer that goes before it has confirmed is told of") {
  for (const bool goes : {true, false}) {
    World world;
    const auto newcomer = world.enter(world.code());
    world.exchange(*newcomer);
    world.exchange(*newcomer);
    if (goes)
      world.desk.leave(newcomer->id, world.now);
    else
      world.pass(Duration::seconds(10));
    CHECK(world.desk.state() == State::unconfirmed);
  }
}

TEST_CASE("a rogue that goes through the codes gets nowhere") {
  World world;
  int guesses = 0;
  for (int guess = 0; guess < 1'000; ++guess) {
    const auto rogue = world.enter(world.wrong_code());
    if (!rogue) {
      world.pass(Duration::milliseconds(200));
      continue;
    }
    world.exchange(*rogue);
    world.exchange(*rogue);
    CHECK(rogue->session.token().empty());
    ++guesses;
  }
  CHECK(guesses == 3);
  CHECK(world.desk.state() == State::gave_up);
}
