#include <catch2/catch.hpp>

#include "tests/local/peer_memory_network.hpp"
#include "tests/sim/two_nodes.hpp"
#include "transport/local/record.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::local;

namespace {

std::vector<std::byte> bytes_of(std::initializer_list<Record> records) {
  std::vector<std::byte> bytes;
  for (const Record& record : records) {
    std::array<std::byte, kMaxRecordBytes> encoded;
    const std::size_t length = encode_record(record, encoded.data());
    bytes.insert(bytes.end(), encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return bytes;
}

/// A peer-memory link at one end, and a peer at the other who writes any bytes.
struct UserlessLink {
  TwoNodes nodes{SimOptions{.seed = 1, .paths = PathOptions::calm()}};
  FaultyMemory memory;
  PeerMark peer;
  std::unique_ptr<Mark> peer_mark = std::make_unique<Mark>();
  std::unique_ptr<Link> own;  // started by none

  explicit UserlessLink(std::size_t pull_bytes = 100) {
    nodes.connect();
    peer = {memory.own_process(), reinterpret_cast<std::uintptr_t>(peer_mark.get()), peer_mark->word};
    own = std::make_unique<PeerMemoryLink>(std::move(nodes.acceptor.link), memory, std::make_unique<Mark>(), peer,
                                           PeerMemoryTuning{.pull_bytes = pull_bytes});
  }
  void write(std::vector<std::byte> bytes) {
    nodes.dialler.outgoing.insert(nodes.dialler.outgoing.end(), bytes.begin(), bytes.end());
    nodes.dialler.link->wake();
    REQUIRE(nodes.world.run_until_idle() == RunEnd::idle);
  }
};

/// The peer is an attacker.
struct Attacked : UserlessLink {
  ByteUser victim;

  Attacked() { victim.use(std::move(own)); }
  void expect_break() {
    REQUIRE(victim.failure);
    CHECK(victim.failure->code() == Errc::protocol_error);
    CHECK_FALSE(victim.failure->text().empty());
  }
};

/// Wants to send a word as soon as something has come.
class AnsweringUser final : public LinkUser {
 public:
  std::unique_ptr<Link> link;
  std::size_t received_bytes = 0;
  std::optional<std::size_t> received_when_asked;

  std::span<const ConstBytes> to_send() override {
    if (word_.empty()) return {};
    if (!received_when_asked) received_when_asked = received_bytes;
    return {&word_, 1};
  }
  void sent(std::size_t bytes) override { word_ = word_.subspan(bytes); }
  std::span<const Bytes> to_receive() override { return {&room_, 1}; }
  void received(std::size_t bytes) override {
    if (std::exchange(received_bytes, received_bytes + bytes) > 0) return;
    word_ = kWord;
    link->wake();
  }
  void receive_ended() override {}
  void link_failed(const Status&) override {}

 private:
  static constexpr std::array<std::byte, 3> kWord{};
  ConstBytes word_;
  std::array<std::byte, 5000> memory_{};
  Bytes room_{memory_};
};

}  // namespace

TEST_CASE("what a side has to send leaves before it reads on from its peer's memory, and nothing is forgotten then") {
  UserlessLink raw;
  AnsweringUser user;
  user.link = std::move(raw.own);
  user.link->start(user);
  std::vector<std::byte> memory(1000, std::byte{5});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  auto records =
      bytes_of({{RecordKind::pull, 1000, address, 1}, {RecordKind::pull, 1000, address, 1}, {RecordKind::last_pull, 1000, address, 1}});
  const auto behind = bytes_of({{.kind = RecordKind::data, .length = 100'000}});
  records.insert(records.end(), behind.begin(), behind.end());
  records.resize(records.size() + 100'000);
  raw.write(records);
  CHECK(user.received_when_asked == 1000U);
  CHECK(user.received_bytes == 103'000);
}

TEST_CASE("records that break the protocol end the link") {
  Attacked attacked;
  SECTION("of an unknown kind") { attacked.write(std::vector<std::byte>(kShortRecordBytes, std::byte{200})); }
  SECTION("without bytes") { attacked.write(bytes_of({{.kind = RecordKind::data, .length = 0}})); }
  SECTION("too long") { attacked.write(bytes_of({{.kind = RecordKind::pull, .length = kMaxRecordLength + 1}})); }
  SECTION("an answer to nothing") { attacked.write(bytes_of({{.kind = RecordKind::taken, .first = 0}})); }
  SECTION("an interruption of nothing") { attacked.write(bytes_of({{.kind = RecordKind::unreadable, .first = 0}})); }
  SECTION("a restart of nothing") { attacked.write(bytes_of({{.kind = RecordKind::restart}})); }
  SECTION("a second end") { attacked.write(bytes_of({{.kind = RecordKind::end}, {.kind = RecordKind::end}})); }
  SECTION("bytes behind the end") { attacked.write(bytes_of({{.kind = RecordKind::end}, {.kind = RecordKind::data, .length = 1}})); }
  attacked.expect_break();
}

TEST_CASE("an answer may not name what was not lent") {
  Attacked attacked;
  attacked.victim.outgoing.resize(5000);
  attacked.victim.link->wake();
  REQUIRE(attacked.nodes.world.run_until_idle() == RunEnd::idle);
  CHECK(attacked.victim.sent_bytes == 0);
  attacked.write(bytes_of({{.kind = GENERATE(RecordKind::taken, RecordKind::unreadable), .first = GENERATE(5001U, ~0ULL)}}));
  attacked.expect_break();
}

TEST_CASE("addresses that cannot be read deliver nothing") {
  Attacked attacked;
  std::vector<std::byte> memory(3000, std::byte{5});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  SECTION("nowhere") { attacked.write(bytes_of({{RecordKind::last_pull, 3000, 16, 1}})); }
  SECTION("in another epoch") { attacked.write(bytes_of({{RecordKind::last_pull, 3000, address, 2}})); }
  SECTION("beside another mark") {
    attacked.peer_mark->word[3] = std::byte{1};
    attacked.write(bytes_of({{RecordKind::last_pull, 3000, address, 1}}));
  }
  CHECK(attacked.victim.incoming.empty());
  CHECK_FALSE(attacked.victim.failure);
  // The records that follow are skipped until the restart, and taken after it.
  auto rest = bytes_of({{.kind = RecordKind::data, .length = 2}});
  rest.resize(rest.size() + 2, std::byte{1});
  const auto more =
      bytes_of({{RecordKind::last_pull, 3000, address, 1}, {.kind = RecordKind::restart}, {.kind = RecordKind::data, .length = 3}});
  rest.insert(rest.end(), more.begin(), more.end());
  rest.resize(rest.size() + 3, std::byte{9});
  attacked.write(rest);
  CHECK(attacked.victim.incoming == std::vector<std::byte>(3, std::byte{9}));
}

TEST_CASE("who asks for answers without reading them is dropped") {
  Attacked attacked;
  attacked.nodes.world.freeze(attacked.nodes.one).when([&] { return attacked.memory.reads > 3; });
  std::vector<std::byte> memory(10, std::byte{5});
  std::vector<std::byte> flood;
  for (int i = 0; i < 100'000; ++i) {
    const auto one = bytes_of({{RecordKind::last_pull, 10, reinterpret_cast<std::uintptr_t>(memory.data()), 1}});
    flood.insert(flood.end(), one.begin(), one.end());
  }
  attacked.write(flood);
  attacked.expect_break();
}

TEST_CASE("who reads the answers may ask for any number of them, also while this side always has something to send") {
  UserlessLink raw(SIZE_MAX);
  ByteUser user;
  user.outgoing.resize(64 << 20);
  user.use(std::move(raw.own));
  user.link->wake();
  std::vector<std::byte> memory(10, std::byte{5});
  const auto pull = bytes_of({{RecordKind::last_pull, 10, reinterpret_cast<std::uintptr_t>(memory.data()), 1}});
  for (std::size_t asked = 1; asked <= 100; ++asked) {
    CAPTURE(asked);
    raw.nodes.dialler.outgoing.insert(raw.nodes.dialler.outgoing.end(), pull.begin(), pull.end());
    raw.nodes.dialler.link->wake();
    const auto has_come = [&] { return user.incoming.size() == 10 * asked || user.failure; };
    REQUIRE(raw.nodes.world.run_until(has_come, {.time = Duration::seconds(10)}) == RunEnd::done);
    REQUIRE_FALSE(user.failure);
  }
  CHECK(user.sent_bytes < user.outgoing.size());
}
