#include <catch2/catch.hpp>
#include <string>

#include "core/elastic/epochs.hpp"
#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/victim.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

struct Violation {
  const char* name;
  Script script;
};

Script joined() { return Script().join(); }

FrameHeader with_group(FrameHeader header, std::uint32_t group, std::uint16_t stream) {
  header.group = group;
  header.stream = stream;
  return header;
}

std::vector<Violation> violations() {
  const MessageShape five{DType::f32, Shape{5}};
  const Call first = sum_of(10, Algorithm::exchange);
  FrameHeader absurd = header_of(FrameKind::data, 0);
  absurd.payload_bytes = UINT32_MAX;
  Script flood = joined();
  flood.call(50, first);
  for (int i = 0; i < 40; ++i) flood.data(50, 0, 2 << 20);
  Script offers = joined();
  for (std::uint64_t i = 1; i < 50; ++i) offers.offer(i, {DType::u8, Shape{200'000}}, true).message(i, 200'000);
  // Nothing of these is too much for one stream.
  Script data_everywhere = joined(), calls_everywhere = joined(), offers_everywhere = joined();
  for (std::uint16_t stream = 1; stream < 1024; ++stream) {
    data_everywhere.call(0, first, stream).data(0, 0, 16 << 10, 0, stream);
    for (std::uint64_t i = 0; i < 20; ++i) calls_everywhere.call(i, first, stream);
    for (std::uint64_t i = 0; i < 20; ++i) offers_everywhere.offer(i, five, false, stream);
  }
  return {
      {"early data in all streams", data_everywhere},
      {"early calls in all streams", calls_everywhere},
      {"offers in all streams", offers_everywhere},
      {"unknown kind", joined().frame(header_of(static_cast<FrameKind>(77), 0))},
      {"absurd length", joined().frame(absurd)},
      {"second join", joined().control(wire::Join{})},
      {"unreadable control", joined().frame(header_of(FrameKind::control, 3), bytes_of("\xff\xff\xff"))},
      {"another group", joined().frame(with_group(header_of(FrameKind::call, 32), 4, 0), Values(32))},
      {"another stream", joined().frame(with_group(header_of(FrameKind::offer, 0), 0, 60'000))},
      {"short call", joined().frame(header_of(FrameKind::call, 31), Values(31))},
      {"unreadable call", joined().frame(header_of(FrameKind::call, 32), Values(32, std::byte{0xff}))},
      {"long call", joined().frame(header_of(FrameKind::call, 56), Values(56))},
      {"call with stray counts", joined().frame(header_of(FrameKind::call, 48), Values(48))},
      {"call with half a count", joined().frame(header_of(FrameKind::call, 36), Values(36))},
      {"call far ahead", joined().call(1ULL << 60, first)},
      {"call twice", joined().call(0, first).call(0, first)},
      {"later call twice", joined().call(7, first).call(7, first)},
      {"data before call", joined().data(0, 0, 40)},
      {"later data before call", joined().data(9, 0, 40)},
      {"wrong transfer", joined().call(0, first).data(0, 1, 40)},
      {"wrong offset", joined().call(0, first).data(0, 0, 20, 4)},
      {"too long", joined().call(0, first).data(0, 0, 44)},
      {"empty frame", joined().call(0, first).data(0, 0, 0)},
      {"half an element", joined().call(0, first).data(0, 0, 3)},
      {"data twice", joined().call(0, first).data(0, 0, 40).data(0, 0, 40)},
      {"too much early data", flood},
      {"message not offered", joined().message(0, 20)},
      {"message not accepted", joined().offer(1, five, false).message(1, 20)},
      {"message too long", joined().offer(0, five, true).message(0, 24)},
      {"message with a hole", joined().offer(0, five, true).message(0, 4).message(0, 4, 8)},
      {"empty message frame", joined().offer(0, five, true).message(0, 0)},
      {"offer twice", joined().offer(3, five, true).offer(3, five, true)},
      {"offer far ahead", joined().offer(1 << 20, five, true)},
      {"huge eager offer", joined().offer(1, {DType::u8, Shape{1 << 30}}, true)},
      {"more eager bytes than allowed", offers},
      {"unreadable offer", joined().frame(header_of(FrameKind::offer, 8), Values(8, std::byte{99}))},
      {"long offer", joined().frame(header_of(FrameKind::offer, 200), Values(200))},
      {"accept of nothing", joined().frame(header_of(FrameKind::accept, 0, 8))},
      {"accept twice", joined().frame(header_of(FrameKind::accept, 0)).frame(header_of(FrameKind::accept, 0))},
      {"accept with payload", joined().frame(header_of(FrameKind::accept, 4), Values(4))},
  };
}

}  // namespace

TEST_CASE("a session written by hand does what a rank would do") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    Victim victim(seed, good_session().bytes());
    REQUIRE(victim.group.met(0)->ok());
    victim.start_operations();
    REQUIRE(victim.run());
    for (const Outcome* outcome : victim.outcomes) {
      INFO(outcome->status.text());
      CHECK(outcome->status.ok());
    }
  }
}

TEST_CASE("a peer that breaks the protocol ends the group with its name") {
  Campaign campaign("a member breaks the protocol, in each of its ways");
  for (const auto& violation : violations()) {
    for (const auto seed : seeds(5)) {
      CAPTURE(violation.name, seed);
      campaign.begin();
      Victim victim(seed, violation.script.bytes());
      victim.start_operations();
      REQUIRE(victim.run());
      const Status& failure = victim.group.world(0).failure();
      INFO(failure.text());
      CHECK(failure.code() == Errc::protocol_error);
      CHECK(failure.rank() == 1);
      CHECK_THAT(failure.text(), Contains("rank 1"));
      for (const Outcome* outcome : victim.outcomes) CHECK(outcome->completions == 1);
      if (failure.code() == Errc::protocol_error && failure.rank() == 1) campaign.goes_well();
    }
  }
}

TEST_CASE("a peer that breaks the protocol of an elastic world is given up, so that no later epoch has it") {
  Campaign campaign("a member of an elastic world breaks the protocol, in each of its ways");
  for (const auto& violation : violations()) {
    for (const auto seed : seeds(5)) {
      CAPTURE(violation.name, seed);
      campaign.begin();
      Victim victim(seed, violation.script.bytes(), true);
      victim.start_operations();
      REQUIRE(victim.run());
      const World& world = victim.group.world(0);
      INFO(world.failure().text());
      CHECK(world.failure().code() == Errc::protocol_error);
      CHECK(world.failure().rank() == 1);
      CHECK_FALSE(world.is_linked(1));
      if (world.failure().code() == Errc::protocol_error && !world.is_linked(1)) campaign.goes_well();
    }
  }
}

TEST_CASE("a member that asks about the next epoch and reads no answers is given up") {
  Victim victim(1, Script().join().bytes(), true);
  SimGroup& group = victim.group;
  Epochs epochs(group.node(0).loop(), group.take_world(0), {});
  World& world = epochs.world();
  world.revoke();
  victim.peer.stop_reading();
  group.sim().run_for(Duration::milliseconds(100));
  REQUIRE(world.is_linked(1));
  Script questions;
  for (int i = 0; i < 20'000; ++i) questions.control(wire::Query{0, std::uint64_t{1} << 32 | 1});
  victim.peer.send(questions.bytes());
  group.sim().run_for(Duration::seconds(1));
  CHECK_FALSE(world.is_linked(1));
  CHECK(&epochs.world() == &world);
}

TEST_CASE("data of an operation that has ended is refused") {
  Victim victim(1, Script().join().call(0, sum_of(10, Algorithm::exchange)).data(0, 0, 40).bytes());
  victim.start_operations();
  REQUIRE(victim.group.sim().run_until([&] { return victim.outcomes[0]->done(); }) == RunEnd::done);
  victim.peer.send_frame(header_of(FrameKind::data, 4, 0), Values(4));
  REQUIRE(victim.run());
  CHECK(victim.outcomes[0]->status.ok());
  CHECK(victim.group.world(0).failure().code() == Errc::protocol_error);
  CHECK_THAT(victim.group.world(0).failure().text(), Contains("operation 0") && Contains("ended"));
}

TEST_CASE("an abort's numbers are not trusted") {
  Victim victim(1, Script().join().control(wire::Abort{250, 1'000'000, "because"}).bytes());
  victim.start_operations();
  victim.group.sim().run_for(Duration::seconds(1));
  const Status& failure = victim.group.world(0).failure();
  CHECK(failure.code() == Errc::protocol_error);
  CHECK(failure.rank() == -1);
  CHECK_THAT(failure.text(), Contains("because"));
}

TEST_CASE("no mutation of a session's bytes crashes or hangs a rank") {
  const Values good = good_session().bytes();
  Campaign campaign("a member's bytes are altered, cut, doubled or moved");
  for (const auto seed : seeds(1500)) {
    CAPTURE(seed);
    campaign.begin();
    SimRandom random(seed);
    Values bytes = good;
    for (auto changes = 1 + random.below(4); changes > 0 && !bytes.empty(); --changes) {
      const std::size_t at = random.below(bytes.size());
      const std::size_t count = std::min<std::size_t>(bytes.size() - at, 1 + random.below(64));
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      switch (random.below(5)) {
        case 0:
          *begin = static_cast<std::byte>(random.next());
          break;
        case 1:
          *begin ^= static_cast<std::byte>(1u << random.below(8));
          break;
        case 2:
          bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
          break;
        case 3: {
          const Values copy(begin, begin + static_cast<std::ptrdiff_t>(count));
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size())), copy.begin(), copy.end());
          break;
        }
        default:
          bytes.resize(at);
          break;
      }
    }
    Victim victim(seed, bytes);
    REQUIRE(victim.group.met(0).has_value());
    victim.start_operations();
    REQUIRE(victim.run());
    for (const Outcome* outcome : victim.outcomes) REQUIRE(outcome->completions == 1);
    campaign.goes_well();
  }
}
