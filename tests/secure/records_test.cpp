// Tests of what somebody on the way can do to the records: nothing of it is delivered, and nothing of it looks like an end.
#include <catch2/catch.hpp>
#include <random>

#include "core/rendezvous/key_schedule.hpp"
#include "core/wire/frame.hpp"
#include "tests/core/seeds.hpp"
#include "tests/local/sim_pair.hpp"
#include "tests/secure/secure_network.hpp"
#include "tests/sim/byte_user.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

using Record = std::vector<std::byte>;

Record seal(RecordCipher& cipher, std::uint64_t number, ConstBytes content) {
  Record record(kRecordHeadBytes + content.size() + Cipher::kTagBytes);
  detail::store_le(record.data(), static_cast<std::uint32_t>(content.size()));
  cipher.seal(number, ConstBytes(record).first(kRecordHeadBytes), std::span(&content, 1), Bytes(record).subspan(kRecordHeadBytes));
  return record;
}

Record seal(CipherSuite suite, const Key& key, std::uint64_t number, ConstBytes content) {
  RecordCipher cipher(suite, key);
  return seal(cipher, number, content);
}

/// What a dialler sends, and the records that carry it: three, then the end.
struct Spoken {
  std::vector<std::byte> content;
  std::vector<Record> records;

  explicit Spoken(std::size_t longest, CipherSuite suite = CipherSuite::chacha20_poly1305) {
    std::mt19937 random(static_cast<unsigned>(longest));
    for (std::uint64_t number = 0; number < 3; ++number) {
      std::vector<std::byte> piece(1 + random() % longest);
      for (std::byte& byte : piece) byte = static_cast<std::byte>(random());
      records.push_back(seal(suite, key_from(0), number, piece));
      content.insert(content.end(), piece.begin(), piece.end());
    }
    records.push_back(seal(suite, key_from(0), 3, {}));
  }
};

/// An encrypted link whose peer sends whatever bytes the test chooses, and what its user receives.
struct Listening {
  SimPair pair;
  ByteUser raw, user;
  std::unique_ptr<Listener> listener;

  Listening(const std::vector<Record>& records, std::uint64_t seed, std::size_t part_bytes = 50, const SecureSetup& setup = {})
      : pair(seed, PathOptions{}) {
    user.part_bytes = part_bytes;
    for (const Record& record : records) raw.outgoing.insert(raw.outgoing.end(), record.begin(), record.end());
    listener = std::move(pair.network(1).listen(pair.any_port(1), [this, setup](std::unique_ptr<Link> link) {
                 user.use(secured(pair.loop(1), std::move(link), 1, setup));
                 user.link->wake();
               })).value();
    pair.network(0).dial(listener->address(), Duration::seconds(5), [this](Result<std::unique_ptr<Link>> link) {
      raw.use(std::move(link).value());
      raw.link->wake();
      raw.link->finish_sending();
    });
    pair.world.run_until_idle({.time = Duration::seconds(60)});
  }
  /// Checks that the user got nothing but whole records from the beginning of what was sent, and then an error.
  void check_broken(const Spoken& spoken) const {
    CHECK_FALSE(user.ended);
    REQUIRE(user.failure);
    CHECK((user.failure->code() == Errc::protocol_error || user.failure->code() == Errc::peer_lost));
    REQUIRE(user.incoming.size() <= spoken.content.size());
    CHECK(std::equal(user.incoming.begin(), user.incoming.end(), spoken.content.begin()));
  }
};

}  // namespace

TEST_CASE("records are as they are documented") {
  const auto suite = GENERATE(CipherSuite::chacha20_poly1305, CipherSuite::aes256_gcm);
  for (const std::size_t part_bytes : {1U, 50U, 100'000U}) {
    const Spoken spoken(300, suite);
    const Listening listening(spoken.records, 1, part_bytes, {.suite = suite});
    CHECK(listening.user.incoming == spoken.content);
    CHECK(listening.user.ended);
    CHECK_FALSE(listening.user.failure);
  }
  // In the other direction, the same bytes leave.
  SimPair pair(1, PathOptions::calm());
  ByteUser raw, user;
  const auto listener =
      std::move(pair.network(1).listen(pair.any_port(1), [&](std::unique_ptr<Link> link) { raw.use(std::move(link)); })).value();
  pair.network(0).dial(listener->address(), Duration::seconds(5), [&](Result<std::unique_ptr<Link>> link) {
    user.use(secured(pair.loop(0), std::move(link).value(), 0, {.suite = suite}));
    user.send(100);
    user.link->finish_sending();
  });
  pair.world.run_until_idle({.time = Duration::seconds(60)});
  Record expected = seal(suite, key_from(0), 0, user.outgoing);
  const Record end = seal(suite, key_from(0), 1, {});
  expected.insert(expected.end(), end.begin(), end.end());
  CHECK(raw.incoming == expected);
}

TEST_CASE("a bit that was flipped anywhere breaks the link before a wrong byte is delivered") {
  const auto suite = GENERATE(CipherSuite::chacha20_poly1305, CipherSuite::aes256_gcm);
  const Spoken spoken(60, suite);
  std::size_t total = 0;
  for (const Record& record : spoken.records) total += record.size();
  for (std::size_t at = 0; at < total; ++at) {
    CAPTURE(at);
    std::vector<Record> records = spoken.records;
    std::size_t record = 0, place = at;
    while (place >= records[record].size()) place -= records[record++].size();
    records[record][place] ^= std::byte{1} << (at % 8);
    Listening listening(records, at, 1 + at % 90, {.suite = suite});
    listening.check_broken(spoken);
    std::size_t before = 0;
    for (std::size_t i = 0; i < record; ++i) before += records[i].size() - kRecordHeadBytes - Cipher::kTagBytes;
    CHECK(listening.user.incoming.size() == before);
  }
}

TEST_CASE("nothing of a record that was changed stays where its user would have had it") {
  const std::vector<std::byte> content(40'000, std::byte{0x5a});
  std::vector<Record> records{seal(CipherSuite::aes256_gcm, key_from(0), 0, content)};
  // The last byte of the content: all before it decrypts to what was sent.
  records[0][kRecordHeadBytes + content.size() - 1] ^= std::byte{1};
  const Listening listening(records, 1, content.size() / 2, {.suite = CipherSuite::aes256_gcm});
  REQUIRE(listening.user.failure);
  CHECK(listening.user.incoming.empty());
  const ConstBytes place = listening.user.place();
  CHECK(place.size() == content.size());
  CHECK(std::all_of(place.begin(), place.end(), [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("a stream that is cut anywhere is no orderly end") {
  const Spoken spoken(60);
  Record whole;
  for (const Record& record : spoken.records) whole.insert(whole.end(), record.begin(), record.end());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    const Listening listening({Record(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))}, length, 1 + length % 90);
    listening.check_broken(spoken);
    CHECK(listening.user.failure->code() == Errc::peer_lost);
  }
}

TEST_CASE("records that are repeated, dropped, swapped or sent back are not taken") {
  const auto suite = GENERATE(CipherSuite::chacha20_poly1305, CipherSuite::aes256_gcm);
  const Spoken spoken(3000, suite);
  const auto& r = spoken.records;
  Record reflected = seal(suite, key_from(1), 0, spoken.content);
  const std::vector<std::vector<Record>> attacks{{r[0], r[0], r[1], r[2], r[3]},
                                                 {r[1], r[0], r[2], r[3]},
                                                 {r[0], r[2], r[3]},
                                                 {r[0], r[1], r[3]},
                                                 {r[3]},
                                                 {r[0], r[1], r[2], r[2], r[3]},
                                                 {reflected},
                                                 {r[0], reflected}};
  for (std::size_t attack = 0; attack < attacks.size(); ++attack)
    for (const auto seed : seeds(10)) {
      CAPTURE(attack, seed);
      const Listening listening(attacks[attack], seed, 1 + seed * 400, {.suite = suite});
      listening.check_broken(spoken);
      CHECK(listening.user.failure->code() == Errc::protocol_error);
      CHECK_THAT(listening.user.failure->text(), Contains("changed on its way"));
    }
}

TEST_CASE("what follows the end is not looked at") {
  const Spoken spoken(300);
  std::vector<Record> records = spoken.records;
  records.push_back(records[0]);
  const Listening listening(records, 1);
  CHECK(listening.user.incoming == spoken.content);
  CHECK(listening.user.ended);
}

TEST_CASE("a record over the limit is refused before memory is taken for it") {
  Record record(kRecordHeadBytes);
  detail::store_le(record.data(), static_cast<std::uint32_t>(kMaxRecordContent + 1));
  const Listening listening({record}, 1);
  REQUIRE(listening.user.failure);
  CHECK(listening.user.failure->code() == Errc::protocol_error);
  CHECK_THAT(listening.user.failure->text(), Contains("65537 bytes") && Contains("65536"));
}

TEST_CASE("a key is replaced behind the record that reaches a limit, and both ends do so at the same one") {
  const auto suite = GENERATE(CipherSuite::chacha20_poly1305, CipherSuite::aes256_gcm);
  const std::vector<std::byte> piece(100, std::byte{7});
  for (const KeyLimits& limits : {KeyLimits{.records = 2}, KeyLimits{.bytes = 150}, KeyLimits{.bytes = 200}}) {
    std::vector<Record> records;
    RecordCipher cipher(suite, key_from(0));
    for (std::uint64_t number = 0; number < 7; ++number) {
      records.push_back(seal(cipher, number, piece));
      if (number % 2 == 1) renew_key(cipher);
    }
    records.push_back(seal(cipher, 7, {}));
    const Listening listening(records, 1, 50, {suite, limits});
    CHECK(listening.user.incoming.size() == 700);
    CHECK(listening.user.ended);
    CHECK_FALSE(listening.user.failure);

    // One that goes on under the old key is not understood, nor is an old record under the new key.
    for (const bool replays : {false, true}) {
      std::vector<Record> wrong(records.begin(), records.begin() + 2);
      wrong.push_back(replays ? records[0] : seal(suite, key_from(0), 2, piece));
      const Listening broken(wrong, 1, 50, {suite, limits});
      CHECK(broken.user.incoming.size() == 200);
      REQUIRE(broken.user.failure);
      CHECK_THAT(broken.user.failure->text(), Contains("number 2") && Contains("changed on its way"));
    }
  }
}

TEST_CASE("a key seals less than AES-GCM allows") {
  // RFC 8446, section 5.5: 2^24.5 records of 2^14 bytes.
  const double allowed_bytes = 23726566.0 * 16384.0;
  const KeyLimits limits;
  CHECK(static_cast<double>(limits.bytes + kMaxRecordContent) < allowed_bytes / 4);
  CHECK(limits.records <= 23726566u);
}

TEST_CASE("records of one cipher are not taken for those of the other") {
  const Spoken spoken(300, CipherSuite::aes256_gcm);
  const Listening listening(spoken.records, 1, 50, {.suite = CipherSuite::chacha20_poly1305});
  listening.check_broken(spoken);
  CHECK(listening.user.incoming.empty());
}
