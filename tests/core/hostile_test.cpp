#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "core/wire/call_record.hpp"
#include "core/wire/control.hpp"
#include "tests/core/raw_peer.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

FrameHeader header_of(FrameKind kind, std::size_t payload_bytes, std::uint64_t sequence = 0) {
  FrameHeader header;
  header.kind = kind;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.sequence = sequence;
  return header;
}

/// Bytes that one rank sends.
class Script {
 public:
  Script& add(ConstBytes bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Script& frame(const FrameHeader& header, ConstBytes payload = {}) {
    std::array<std::byte, kFrameHeaderBytes> encoded{};
    encode(header, encoded.data());
    return add(encoded).add(payload);
  }
  Script& control(const wire::ControlMessage& message) {
    const std::string payload = wire::encode_control(message);
    return frame(header_of(FrameKind::control, payload.size()), bytes_of(payload));
  }
  Script& join() { return control(wire::Hello{wire::Hello::Purpose::join, 1, 2, "", 5000, 0}).control(wire::Ready{}); }
  Script& call(std::uint64_t sequence, const Call& call) {
    std::vector<std::byte> record;
    append_call(call, 0, record);
    return frame(header_of(FrameKind::call, record.size(), sequence), record);
  }
  Script& data(std::uint64_t sequence, std::uint32_t transfer, std::size_t bytes, std::size_t offset = 0) {
    FrameHeader header = header_of(FrameKind::data, bytes, sequence);
    header.transfer = transfer;
    header.offset = offset;
    return frame(header, Values(bytes));
  }
  Script& offer(std::uint64_t sequence, const MessageShape& shape, bool eager) {
    const auto record = encode_message_shape(shape);
    FrameHeader header = header_of(FrameKind::offer, record.size, sequence);
    header.flags = eager ? kFlagEager : std::uint8_t{0};
    return frame(header, ConstBytes(record.bytes).first(record.size));
  }
  Script& message(std::uint64_t sequence, std::size_t bytes, std::size_t offset = 0) {
    FrameHeader header = header_of(FrameKind::message, bytes, sequence);
    header.offset = offset;
    return frame(header, Values(bytes));
  }
  const Values& bytes() const { return bytes_; }

 private:
  Values bytes_;
};

Call sum_of(std::size_t count, Algorithm algorithm) {
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.dtype = DType::f32;
  call.rows = count;
  call.algorithm = algorithm;
  return call;
}

Call gathered(std::uint64_t first, std::uint64_t second) {
  Call call = sum_of(first + second, Algorithm::direct);
  call.kind = CollectiveKind::all_gather;
  call.counts = {first, second};
  return call;
}

/// What rank 1 tells rank 0: the rows for it, the rows from it.
Call exchanged(std::uint64_t sent, std::uint64_t received) {
  Call call = gathered(sent, received);
  call.kind = CollectiveKind::all_to_all;
  call.rows = 0;
  return call;
}

/// Rank 0 of two, with operations pending, and a raw peer in the place of rank 1.
struct Victim {
  SimGroup group;
  RawPeer peer;
  std::vector<std::vector<float>> values{std::vector<float>(10), std::vector<float>(20), std::vector<float>(100), std::vector<float>(5),
                                         std::vector<float>(6),  std::vector<float>(8),  std::vector<float>(5)};
  const std::vector<std::int64_t> counts{3, 5}, sent{4, 1}, received{4, 4};
  std::vector<Outcome*> outcomes;
  Values later;

  static GroupSetup setup(std::uint64_t seed) {
    GroupSetup setup;
    setup.seed = seed;
    setup.connect_timeout = Duration::seconds(5);
    setup.world.limits = {64, 128};
    setup.world.operation_timeout = Duration::seconds(5);
    return setup;
  }
  explicit Victim(std::uint64_t seed, const Values& script) : group(setup(seed)), peer(group.sim()) {
    // What joins goes first; the rest follows when the operations have been started.
    const auto split = static_cast<std::ptrdiff_t>(std::min(script.size(), Script().join().bytes().size()));
    later.assign(script.begin() + split, script.end());
    group.start_meeting(0);
    peer.use_token(kSimToken);
    peer.dial_until_linked(group.listening_address(0),
                           [this, first = Values(script.begin(), script.begin() + split)] { peer.send(first); });
    group.sim().run_until([&] { return group.met(0).has_value(); }, {.time = Duration::seconds(10)});
  }
  void start_operations() {
    const WorldOptions& options = group.options(0);
    for (const std::size_t i : {0U, 1U, 2U})
      outcomes.push_back(&group.start(0, 0, make_all_reduce(ReduceOp::sum, values[i], values[i], 1, options)));
    outcomes.push_back(&group.start(0, 0, make_barrier(options)));
    const ConstTensorView own_part(values[5].data(), DType::f32, 3);
    outcomes.push_back(&group.start(0, 0, make_all_gather_v(own_part, values[5], counts, options)));
    outcomes.push_back(&group.start(0, 0, make_all_to_all_v(values[6], values[5], sent, received, options)));
    outcomes.push_back(&group.receive(0, 0, make_receive(values[3], 1, options)));
    outcomes.push_back(&group.send(0, 0, make_send(values[4], 1, options)));
    group.sim().run_for(Duration::milliseconds(50));
    peer.send(later);
  }
  void run() { REQUIRE(group.run_until_done(Duration::seconds(60))); }
};

/// What a well-behaved rank 1 would send for these operations.
Script good_session() {
  Script script;
  script.join();
  script.call(0, sum_of(10, Algorithm::exchange)).data(0, 0, 40);
  script.call(1, sum_of(20, Algorithm::direct)).data(1, 0, 64).data(1, 1, 16);
  script.offer(0, {DType::f32, Shape{5}}, true).message(0, 20).frame(header_of(FrameKind::accept, 0));
  script.call(2, sum_of(100, Algorithm::ring)).data(2, 0, 100).data(2, 0, 92, 100).data(2, 1, 208);
  script.frame(header_of(FrameKind::heartbeat, 0)).call(3, Call{}).data(3, 0, 0);
  script.call(4, gathered(3, 5)).data(4, 0, 20).call(5, exchanged(4, 1)).data(5, 0, 16);
  return script;
}

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
  for (std::uint64_t i = 1; i < 10; ++i) offers.offer(i, {DType::u8, Shape{200'000}}, true).message(i, 200'000);
  return {
      {"unknown kind", joined().frame(header_of(static_cast<FrameKind>(77), 0))},
      {"absurd length", joined().frame(absurd)},
      {"second hello", joined().control(wire::Hello{})},
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
    victim.run();
    for (const Outcome* outcome : victim.outcomes) {
      INFO(outcome->status.text());
      CHECK(outcome->status.ok());
    }
  }
}

TEST_CASE("a peer that breaks the protocol ends the group with its name") {
  for (const auto& violation : violations()) {
    for (const auto seed : seeds(5)) {
      CAPTURE(violation.name, seed);
      Victim victim(seed, violation.script.bytes());
      victim.start_operations();
      victim.run();
      const Status& failure = victim.group.world(0).failure();
      INFO(failure.text());
      CHECK(failure.code() == Errc::protocol_error);
      CHECK(failure.rank() == 1);
      CHECK_THAT(failure.text(), Contains("rank 1"));
      for (const Outcome* outcome : victim.outcomes) CHECK(outcome->completions == 1);
    }
  }
}

TEST_CASE("data of an operation that has ended is refused") {
  Victim victim(1, Script().join().call(0, sum_of(10, Algorithm::exchange)).data(0, 0, 40).bytes());
  victim.start_operations();
  REQUIRE(victim.group.sim().run_until([&] { return victim.outcomes[0]->done(); }) == RunEnd::done);
  victim.peer.send_frame(header_of(FrameKind::data, 4, 0), Values(4));
  victim.run();
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
  for (const auto seed : seeds(1500)) {
    CAPTURE(seed);
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
    victim.run();
    for (const Outcome* outcome : victim.outcomes) REQUIRE(outcome->completions == 1);
  }
}
