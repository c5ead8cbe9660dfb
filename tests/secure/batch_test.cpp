// Tests of how an encrypted link cuts what it is given into records, how many of them leave at once, and where it opens them.
#include <catch2/catch.hpp>

#include "core/wire/frame.hpp"
#include "tests/local/sim_pair.hpp"
#include "tests/secure/secure_network.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

/// A link whose calls to its user the test makes.
class HeldLink final : public Link {
 public:
  explicit HeldLink(LinkUser*& user) : user_(user) {}
  void start(LinkUser& user) override { user_ = &user; }
  void wake() override {}
  void finish_sending() override {}
  std::string peer_name() const override { return "peer"; }

 private:
  LinkUser*& user_;
};

/// Sends the parts that it is given, and has `room` for what comes.
class PartsUser final : public LinkUser {
 public:
  std::vector<ConstBytes> parts;
  std::vector<std::byte> room;
  std::size_t received_bytes = 0;
  std::optional<Status> failure;

  std::span<const ConstBytes> to_send() override { return parts; }
  void sent(std::size_t bytes) override {
    for (ConstBytes& part : parts) {
      const std::size_t taken = std::min(bytes, part.size());
      part = part.subspan(taken);
      bytes -= taken;
    }
  }
  std::span<const Bytes> to_receive() override {
    place_ = room;
    return {&place_, 1};
  }
  void received(std::size_t bytes) override { received_bytes += bytes; }
  void receive_ended() override {}
  void link_failed(const Status& status) override { failure = status; }

 private:
  Bytes place_;
};

struct HeldPair {
  SimPair pair{1, PathOptions::calm()};
  LinkUser* secure = nullptr;  // the encrypted link, as the user of the one below it
  std::unique_ptr<Link> link = secured(pair.loop(0), std::make_unique<HeldLink>(secure), 0, {.suite = CipherSuite::aes256_gcm});
  PartsUser user;

  HeldPair() { link->start(user); }
  /// Takes what the link has to send, and returns the lengths of the contents of its records.
  std::vector<std::size_t> take_batch() {
    const auto parts = secure->to_send();
    REQUIRE(parts.size() <= 1);
    std::vector<std::size_t> contents;
    if (parts.empty()) return contents;
    ConstBytes left = parts[0];
    while (!left.empty()) {
      contents.push_back(detail::load_le<std::uint32_t>(left.data()));
      left = left.subspan(kRecordHeadBytes + contents.back() + Cipher::kTagBytes);
    }
    secure->sent(parts[0].size());
    return contents;
  }
  void put(ConstBytes bytes) {
    while (!bytes.empty()) {
      const Bytes place = secure->to_receive()[0];
      const std::size_t moved = std::min(place.size(), bytes.size());
      std::copy_n(bytes.begin(), moved, place.begin());
      bytes = bytes.subspan(moved);
      secure->received(moved);
    }
  }
};

std::vector<std::byte> sealed_by_peer(ConstBytes content) {
  RecordCipher cipher(CipherSuite::aes256_gcm, key_from(1));
  std::vector<std::byte> record(kRecordHeadBytes + content.size() + Cipher::kTagBytes);
  detail::store_le(record.data(), static_cast<std::uint32_t>(content.size()));
  cipher.seal(0, ConstBytes(record).first(kRecordHeadBytes), std::span(&content, 1), Bytes(record).subspan(kRecordHeadBytes));
  return record;
}

}  // namespace

TEST_CASE("a long part has records of its own, short ones share theirs, and several records leave at once") {
  HeldPair held;
  const std::vector<std::byte> head(32), payload(4 * kMaxRecordContent), rest(2 * kMaxRecordContent + 10'000), word(100);
  using Lengths = std::vector<std::size_t>;

  // The first long record finds only a small buffer, so the records before it leave alone.
  held.user.parts = {head, payload};
  CHECK(held.take_batch() == Lengths{32});
  CHECK(held.take_batch() == Lengths(4, kMaxRecordContent));
  CHECK(held.take_batch().empty());

  // What is left of a long part is short, so it goes with the next head.
  held.user.parts = {head, rest, head, word, head, payload};
  CHECK(held.take_batch() == Lengths{32, kMaxRecordContent, kMaxRecordContent, 10'000 + 32 + 100 + 32, kMaxRecordContent});
  CHECK(held.take_batch() == Lengths(3, kMaxRecordContent));

  held.user.parts.assign(50, head);
  CHECK(held.take_batch() == Lengths{1600});
  CHECK(held.take_batch().empty());
}

TEST_CASE("a batch that the link below takes in pieces leaves whole before anything more is sealed") {
  HeldPair held;
  const std::vector<std::byte> payload(10 * kMaxRecordContent);
  held.user.parts = {payload};
  const auto first = held.secure->to_send()[0];
  const std::size_t left = held.user.parts[0].size();
  CHECK(left == payload.size() - kBatchRecords * kMaxRecordContent);
  held.secure->sent(first.size() - 10);
  CHECK(held.secure->to_send()[0].size() == 10);
  CHECK(held.user.parts[0].size() == left);
  held.secure->sent(10);
  CHECK(held.secure->to_send()[0].size() == kBatchRecords * kMaxRecordBytes);
}

TEST_CASE("a record is opened straight into a place that fits it, which is cleared where the record was changed") {
  const std::vector<std::byte> content(40'000, std::byte{0x5a});
  std::vector<std::byte> record = sealed_by_peer(content);
  const bool changed = GENERATE(false, true);
  // The last byte of the content is changed: all before it decrypts to what was sent.
  if (changed) record[kRecordHeadBytes + content.size() - 1] ^= std::byte{1};
  HeldPair held;
  held.user.room.assign(content.size(), std::byte{0x11});
  held.put(record);
  CHECK(held.user.received_bytes == (changed ? 0 : content.size()));
  CHECK(held.user.failure.has_value() == changed);
  if (changed)
    CHECK(held.user.room == std::vector<std::byte>(content.size()));
  else
    CHECK(held.user.room == content);
}
