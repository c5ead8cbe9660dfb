#include "transport/local/outbox.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"

using namespace ringlet;
using namespace ringlet::local;

namespace {

std::vector<std::byte> unsent_bytes(Outbox& outbox) {
  std::vector<std::byte> bytes;
  for (const ConstBytes part : outbox.unsent()) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

std::vector<Record> records_in(const std::vector<std::byte>& unsent) {
  ConstBytes bytes(unsent);
  std::vector<Record> records;
  while (!bytes.empty()) {
    records.push_back(decode_record(bytes.data()));
    const std::size_t data = records.back().kind == RecordKind::data ? records.back().length : 0;
    bytes = bytes.subspan(record_bytes(bytes.data()) + data);
  }
  return records;
}

}  // namespace

TEST_CASE("records survive being written and read") {
  for (const RecordKind kind : {RecordKind::data, RecordKind::pull, RecordKind::last_pull, RecordKind::taken, RecordKind::unreadable,
                                RecordKind::restart, RecordKind::end}) {
    std::array<std::byte, kMaxRecordBytes> bytes{};
    const Record record{kind, 0x1234567, 0xfedcba9876543210, 77};
    const std::size_t written = encode_record(record, bytes.data());
    CHECK(written == record_bytes(bytes.data()));
    const Record read = decode_record(bytes.data());
    CHECK(read.kind == kind);
    CHECK(read.length == record.length);
    if (record_bytes(bytes.data()) > kShortRecordBytes) CHECK(read.first == record.first);
    if (record_bytes(bytes.data()) == kMaxRecordBytes) CHECK(read.second == record.second);
  }
  std::array<std::byte, kMaxRecordBytes> unknown{};
  CHECK(record_bytes(unknown.data()) == 0);
  unknown[4] = std::byte{8};
  CHECK(record_bytes(unknown.data()) == 0);
}

TEST_CASE("short parts among long ones are copied together, long ones are lent, the last of them asks for an answer") {
  const std::vector<std::byte> memory(1000);
  const ConstBytes all(memory);
  const std::array<ConstBytes, 6> parts{all.first(10),        all.subspan(10, 20),   all.subspan(30, 0),
                                        all.subspan(30, 300), all.subspan(330, 400), all.subspan(730, 5)};
  Outbox outbox(100);
  CHECK(outbox.announce(parts, 9) == 735);
  CHECK(outbox.awaits_answer());
  const auto records = records_in(unsent_bytes(outbox));
  REQUIRE(records.size() == 4);
  CHECK((records[0].kind == RecordKind::data && records[0].length == 30));
  CHECK((records[1].kind == RecordKind::pull && records[1].length == 300 && records[1].second == 9));
  CHECK((records[2].kind == RecordKind::last_pull && records[2].length == 400));
  CHECK(records[2].first == reinterpret_cast<std::uintptr_t>(memory.data() + 330));
  CHECK((records[3].kind == RecordKind::data && records[3].length == 5));

  CHECK_FALSE(outbox.on_taken(735));
  CHECK_FALSE(outbox.on_unreadable(731));
  CHECK(outbox.on_taken(730) == 735);
  CHECK_FALSE(outbox.awaits_answer());
  CHECK_FALSE(outbox.on_taken(730));
}

TEST_CASE("parts that are not lent leave by themselves, bounded, and need no answer") {
  std::vector<std::byte> memory(1 << 20);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i % 251);
  Outbox outbox(2 << 20);
  const std::array<ConstBytes, 3> parts{ConstBytes(memory).first(1000), ConstBytes(memory).subspan(1000, 0),
                                        ConstBytes(memory).subspan(1000)};
  const std::size_t announced = outbox.announce(parts, 1);
  CHECK(announced > 1000);
  CHECK(announced < memory.size());
  CHECK_FALSE(outbox.awaits_answer());
  CHECK(outbox.batch_under_way());
  const std::vector<std::byte> all = unsent_bytes(outbox);
  REQUIRE(all.size() == kShortRecordBytes + announced);
  CHECK(records_in(all).size() == 1);
  // An answer follows the parts, wherever they stand, and whether or not they are copied meanwhile.
  const std::size_t before = GENERATE(0U, 1U, 8U, 9U, 1008U, 1009U, 5000U);
  const bool kept = GENERATE(false, true);
  const bool answers = GENERATE(false, true);
  CHECK(outbox.left(before) == 0);
  if (answers) outbox.put({.kind = RecordKind::taken, .first = 7});
  if (kept) CHECK(outbox.keep() == announced);
  if (kept) std::fill(memory.begin(), memory.end(), std::byte{0xee});
  std::vector<std::byte> rest;
  std::size_t left = 0;
  while (!outbox.unsent().empty()) {
    const std::vector<std::byte> next = unsent_bytes(outbox);
    const std::size_t bytes = std::min<std::size_t>(next.size(), 77'777);
    rest.insert(rest.end(), next.begin(), next.begin() + static_cast<std::ptrdiff_t>(bytes));
    left += outbox.left(bytes);
  }
  CHECK(left == (kept ? 0 : announced));
  CHECK_FALSE(outbox.batch_under_way());
  REQUIRE(rest.size() == all.size() - before + (answers ? kShortRecordBytes + 8 : 0));
  CHECK(std::equal(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(), rest.begin()));
  if (answers) CHECK(decode_record(rest.data() + all.size() - before).first == 7);
}

TEST_CASE("what a batch announces is where the parts begin, whatever their sizes, and an answer is awaited for a last pull") {
  std::vector<std::byte> memory(4 << 20);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  SimRandom random(1);
  int lent = 0, cut = 0;
  for (int turn = 0; turn < 300; ++turn) {
    CAPTURE(turn);
    // Many parts end near what one batch copies, 256 KiB, and long ones stand before and behind that.
    const std::array<std::size_t, 6> sizes{0, 32, 16 << 10, 65'500 + random.below(80), 100 << 10, 120'000 + random.below(30'000)};
    std::vector<ConstBytes> parts;
    std::size_t bytes = 0;
    for (std::size_t count = 1 + random.below(40); count > 0; --count) {
      const ConstBytes part = ConstBytes(memory).subspan(bytes, sizes[random.below(sizes.size())]);
      bytes += part.size();
      parts.push_back(part);
      if (bytes > memory.size() - (200 << 10)) break;
    }
    if (bytes == 0) continue;
    Outbox outbox(128 << 10);
    const std::size_t announced = outbox.announce(parts, 1);
    REQUIRE(announced > 0);
    REQUIRE(announced <= bytes);
    const std::vector<std::byte> unsent = unsent_bytes(outbox);
    std::size_t at = 0;  // in the memory, of what the records say
    int last_pulls = 0;
    for (ConstBytes rest(unsent); !rest.empty();) {
      REQUIRE(record_bytes(rest.data()) > 0);
      const Record record = decode_record(rest.data());
      rest = rest.subspan(record_bytes(rest.data()));
      if (record.kind == RecordKind::data) {
        const ConstBytes copied = rest.first(record.length);
        REQUIRE(std::equal(copied.begin(), copied.end(), memory.begin() + static_cast<std::ptrdiff_t>(at)));
        rest = rest.subspan(record.length);
      } else {
        REQUIRE(last_pulls == 0);
        REQUIRE(record.first == reinterpret_cast<std::uintptr_t>(memory.data() + at));
        last_pulls += record.kind == RecordKind::last_pull ? 1 : 0;
      }
      at += record.length;
    }
    REQUIRE(at == announced);
    REQUIRE(outbox.awaits_answer() == (last_pulls == 1));
    lent += last_pulls;
    cut += announced < bytes ? 1 : 0;
  }
  CHECK(lent > 50);
  CHECK(cut > 50);
}

TEST_CASE("a batch that is too long to be lent needs no answer, nor what follows it") {
  const std::vector<std::byte> memory(1000);
  const auto announce = [&](Outbox& outbox, std::size_t bytes) {
    const std::array<ConstBytes, 1> parts{ConstBytes(memory).first(bytes)};
    CHECK(outbox.announce(parts, 1, {.from = 300, .below = 800}) == bytes);
    const bool lends = outbox.awaits_answer();
    if (lends) return lends;
    CHECK(outbox.left(kShortRecordBytes + bytes) == bytes);
    CHECK_FALSE(outbox.batch_under_way());
    return lends;
  };
  Outbox outbox(100);
  CHECK_FALSE(announce(outbox, 800));
  CHECK_FALSE(announce(outbox, 799));
  CHECK_FALSE(announce(outbox, 300));
  CHECK_FALSE(announce(outbox, 299));
  CHECK(announce(outbox, 300));
}

TEST_CASE("an unreadable batch goes on from where the peer got to") {
  const bool kept = GENERATE(false, true);
  std::vector<std::byte> memory(1000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i % 251);
  const std::array<ConstBytes, 2> parts{ConstBytes(memory).first(600), ConstBytes(memory).subspan(600)};
  Outbox outbox(100);
  CHECK(outbox.announce(parts, 1) == 1000);
  CHECK(outbox.left(unsent_bytes(outbox).size()) == 0);
  if (kept) CHECK(outbox.keep() == 1000);
  if (kept) CHECK(outbox.keep() == 0);
  CHECK(outbox.on_unreadable(700).value_or(1) == (kept ? 0U : 700U));
  const auto records = records_in(unsent_bytes(outbox));
  REQUIRE_FALSE(records.empty());
  CHECK(records[0].kind == RecordKind::restart);
  if (kept) {
    REQUIRE(records.size() == 2);
    CHECK(records[1].length == 300);
    CHECK(unsent_bytes(outbox).back() == memory.back());
  }
  CHECK(outbox.left(unsent_bytes(outbox).size()) == 0);
  // No memory is lent any more.
  CHECK(outbox.announce(parts, 2) == 1000);
  CHECK_FALSE(outbox.awaits_answer());
}
