#include <catch2/catch.hpp>
#include <cmath>

#include "core/wire/call_record.hpp"
#include "core/wire/frame.hpp"
#include "sim/sim_random.hpp"

using namespace ringlet;

namespace {

std::array<std::byte, kFrameHeaderBytes> encoded(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  encode(header, bytes.data());
  return bytes;
}

Status decoded(const std::array<std::byte, kFrameHeaderBytes>& bytes) {
  FrameHeader header;
  return decode(bytes.data(), header);
}

std::vector<std::byte> record_of_call(const Call& call, int peer = 0) {
  std::vector<std::byte> record;
  const std::size_t bytes = append_call(call, peer, record);
  CHECK(bytes == record.size());
  return record;
}

}  // namespace

TEST_CASE("a frame header is these bytes") {
  const FrameHeader header{0x010203, FrameKind::data, 1, 0x0405, 0x06070809, 0x0a0b0c0d, 0x1112131415161718, 0x2122232425262728};
  const auto bytes = encoded(header);
  const std::array<unsigned char, kFrameHeaderBytes> expected{0x03, 0x02, 0x01, 0x00, 3,    1,    0x05, 0x04, 0x09, 0x08, 0x07,
                                                              0x06, 0x0d, 0x0c, 0x0b, 0x0a, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
                                                              0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
  CHECK(std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0);
  FrameHeader back;
  CHECK(decode(bytes.data(), back).ok());
  CHECK(back == header);
}

TEST_CASE("frames of unknown kinds and over their limits are refused") {
  for (int kind = 0; kind < 256; ++kind) {
    FrameHeader header;
    header.kind = static_cast<FrameKind>(kind);
    const Status status = decoded(encoded(header));
    CHECK(status.ok() == (kind >= 1 && kind <= 10));
    if (!status.ok()) CHECK_THAT(status.text(), Catch::Contains(std::to_string(kind)));
    const bool bulk = header.kind == FrameKind::data || header.kind == FrameKind::message;
    header.payload_bytes = bulk ? kMaxDataPayload : kMaxControlPayload;
    CHECK(decoded(encoded(header)).ok() == status.ok());
    ++header.payload_bytes;
    CHECK(decoded(encoded(header)).code() == Errc::protocol_error);
    header.payload_bytes = UINT32_MAX;
    CHECK(decoded(encoded(header)).code() == Errc::protocol_error);
  }
}

TEST_CASE("the preface carries magic and version") {
  auto preface = encode_preface();
  CHECK(check_preface(preface.data()).ok());
  for (std::size_t i = 0; i < preface.size(); ++i) {
    auto other = preface;
    other[i] ^= std::byte{0x40};
    CHECK(check_preface(other.data()).code() == Errc::protocol_error);
  }
  preface[4] = std::byte{99};
  CHECK_THAT(check_preface(preface.data()).text(),
             Catch::Contains("version 99") && Catch::Contains("version " + std::to_string(kWireVersion)));
}

TEST_CASE("a call record keeps every field") {
  const Call call{CollectiveKind::broadcast, DType::bf16, ReduceOp::min, Algorithm::ring, Purpose::tree, 7, 1ULL << 40, 3, 0.1};
  const auto record = record_of_call(call);
  CHECK(record.size() == kCallRecordBytes);
  CHECK(decode_call(record) == call);
  CHECK_FALSE(decode_call(ConstBytes(record).first(31)));
  CHECK_FALSE(decode_call({}));
  const std::array<unsigned, 4> limits{kCollectiveKindCount, kDTypeCount, kReduceOpCount, kAlgorithmCount};
  for (std::size_t field = 0; field < limits.size(); ++field) {
    for (unsigned value = 0; value < 256; ++value) {
      auto changed = record;
      changed[field] = static_cast<std::byte>(value);
      // An element is of a dtype or, from 128 on, a block.
      const bool is_blocks = field == 1 && value >= 128 && value < 128 + kBlockFormatCount;
      CHECK(decode_call(changed).has_value() == (value < limits[field] || is_blocks));
    }
  }
  for (unsigned value = 0; value < 256; ++value) {
    auto changed = record;
    changed[7] = static_cast<std::byte>(value);
    const auto back = decode_call(changed);
    CHECK(back.has_value() == (value < kPurposes.size()));
    if (back) CHECK(back->root == 7);
  }
}

TEST_CASE("a call record keeps the format of blocks, which counts in the comparison") {
  for (std::size_t format = 0; format < kBlockFormatCount; ++format) {
    Call call{.kind = CollectiveKind::all_reduce, .dtype = DType::f32, .rows = 7, .divisor = 3};
    const Call without = call;
    call.blocks = static_cast<BlockFormat>(format);
    CHECK(decode_call(record_of_call(call)) == call);
    CHECK_FALSE(agree(call, without, 1));
    CHECK(call.bytes() == 7 * block_bytes(*call.blocks));
  }
  Call call{.kind = CollectiveKind::all_reduce, .algorithm = Algorithm::hub, .rows = 7, .divisor = 3, .blocks = BlockFormat::int4};
  CHECK(describe(call) == "all_reduce(sum, int4 blocks x 7, divided by 3, hub)");
}

TEST_CASE("a call record keeps the counts, and only where the kind has them") {
  Call call;
  call.counts = {3, 0, 1ULL << 40};
  for (std::size_t kind = 0; kind < kCollectiveKindCount; ++kind) {
    call.kind = static_cast<CollectiveKind>(kind);
    if (call.kind == CollectiveKind::all_to_all) continue;
    const auto record = record_of_call(call);
    CHECK(record.size() == kCallRecordBytes + 24);
    const bool divides = call.kind == CollectiveKind::reduce_scatter || call.kind == CollectiveKind::all_gather ||
                         call.kind == CollectiveKind::gather || call.kind == CollectiveKind::scatter;
    const auto back = decode_call(record);
    CHECK(back.has_value() == divides);
    if (divides) CHECK(back == call);
    CHECK_FALSE(decode_call(ConstBytes(record).first(record.size() - 1)));
  }
}

TEST_CASE("a pairwise call tells each peer its own two counts") {
  Call call;
  call.kind = CollectiveKind::all_to_all;
  call.counts = {1, 2, 3, 4, 5, 6};
  CHECK(record_of_call(call, 1).size() == kCallRecordBytes + 16);
  const auto told = decode_call(record_of_call(call, 1));
  REQUIRE(told);
  CHECK(told->counts == std::vector<std::uint64_t>{2, 5});
  CHECK(*told == between(call, 1));
  Call theirs = *told;
  CHECK_FALSE(agree(call, theirs, 1));
  theirs.counts = {5, 2};
  CHECK(agree(call, theirs, 1));
  CHECK_FALSE(agree(call, theirs, 2));
  theirs.dtype = DType::f32;
  CHECK_FALSE(agree(call, theirs, 1));
  // A call of this kind carries a fixed number of counts, and any other number is refused.
  auto record = record_of_call(call, 1);
  record.resize(record.size() + 8);
  CHECK_FALSE(decode_call(record));
}

TEST_CASE("calls are described with their parts") {
  Call call;
  call.kind = CollectiveKind::all_gather;
  call.dtype = DType::f32;
  call.algorithm = Algorithm::direct;
  call.counts = {3, 0, 5};
  call.rows = 8;
  CHECK(describe(call) == "all_gather_v(f32, rows 3+0+5, direct)");
  call.row_elements = 7;
  call.kind = CollectiveKind::gather;
  call.root = 2;
  CHECK(describe(call) == "gather_v(f32, rows 3+0+5 x 7, root 2, direct)");
  call.kind = CollectiveKind::all_to_all;
  call.row_elements = 1;
  call.counts = {3, 0, 5, 1, 0, 2};
  CHECK(describe(call) == "all_to_all_v(f32, sends rows 3+0+5, receives rows 1+0+2, direct)");
  call.kind = CollectiveKind::all_gather;
  call.counts.assign(20, 1);
  Call other = call;
  other.counts[17] = 9;
  CHECK(describe(call) == "all_gather_v(f32, rows 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+... (20 parts), direct)");
  CHECK(describe(call) == describe(other));
  CHECK(describe_difference(call, other) == "; the parts of rank 17 differ: 1 and 9 rows");
  CHECK(describe_difference(call, call).empty());
}

TEST_CASE("a call of the program's own never agrees with one that serves something else") {
  Call own;
  own.kind = CollectiveKind::all_gather;
  own.dtype = DType::i32;
  own.rows = 4;
  Call of_split = own;
  of_split.purpose = Purpose::split;
  CHECK_FALSE(agree(own, of_split, 1));
  CHECK(decode_call(record_of_call(of_split)) == of_split);
  CHECK(describe(of_split) == "all_gather(i32 x 4, exchange) for split()");
  CHECK(describe(own) == "all_gather(i32 x 4, exchange)");
}

TEST_CASE("averages with a weight and without one are told apart") {
  Call weights;
  weights.kind = CollectiveKind::all_reduce;
  weights.dtype = DType::f64;
  weights.rows = 1;
  weights.purpose = Purpose::weights;
  Call mean = weights;
  mean.rows = 100;
  mean.purpose = Purpose::program;
  CHECK(describe_difference(weights, mean).empty());
  mean.purpose = Purpose::gradients;
  const std::string told = "; of averages, either every rank gives a weight or none does";
  CHECK(describe_difference(weights, mean) == told);
  CHECK(describe_difference(mean, weights) == told);
  CHECK(describe_difference(weights, weights).empty());
}

TEST_CASE("where one rank compares a tree and another one reduces, the tree of one has changed") {
  Call comparison;
  comparison.kind = CollectiveKind::all_gather;
  comparison.purpose = Purpose::tree;
  Call reduction;
  reduction.kind = CollectiveKind::reduce_scatter;
  reduction.dtype = DType::f32;
  reduction.rows = 100;
  const std::string told = "; where both were given a tree of tensors, only one of them has been given other tensors than before";
  CHECK(describe_difference(comparison, reduction) == told);
  CHECK(describe_difference(reduction, comparison) == told);
  comparison.purpose = Purpose::program;
  CHECK(describe_difference(comparison, reduction).empty());
}

TEST_CASE("a call that cannot be divided or counted equals itself on the wire") {
  Call call;
  call.divisor = std::nan("");
  const auto back = decode_call(record_of_call(call));
  REQUIRE(back);
  CHECK(record_of_call(*back) == record_of_call(call));
}

TEST_CASE("a message shape keeps dtype and extents") {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 4}, Shape{1, 1, 1, 1, 1, 1, 1, 9}}) {
    const MessageShape message{DType::f16, shape};
    const auto record = encode_message_shape(message);
    CHECK(record.size == 8 + 8 * shape.axes());
    CHECK(decode_message_shape(ConstBytes(record.bytes).first(record.size)) == message);
    CHECK_FALSE(decode_message_shape(ConstBytes(record.bytes).first(record.size - 1)));
  }
}

TEST_CASE("impossible message shapes are refused") {
  const auto record_of = [](std::initializer_list<std::uint64_t> extents, int dtype = 0, int axes = -1) {
    std::vector<std::byte> bytes(8 + 8 * extents.size());
    bytes[0] = static_cast<std::byte>(dtype);
    bytes[1] = static_cast<std::byte>(axes < 0 ? static_cast<int>(extents.size()) : axes);
    std::size_t at = 8;
    for (const auto extent : extents) detail::store_le(bytes.data() + std::exchange(at, at + 8), extent);
    return bytes;
  };
  // Half of the bytes that pointers can differ by are allowed; all of them are refused.
  const std::uint64_t most = std::uint64_t{1} << (8 * sizeof(std::size_t) - 2);
  CHECK(decode_message_shape(record_of({most})));
  CHECK_FALSE(decode_message_shape(record_of({most}, 2)));
  CHECK_FALSE(decode_message_shape(record_of({1ULL << 63})));
  CHECK_FALSE(decode_message_shape(record_of({UINT64_MAX})));
  CHECK_FALSE(decode_message_shape(record_of({1ULL << 32, 1ULL << 32})));
  CHECK_FALSE(decode_message_shape(record_of({1ULL << 32, 0, 1ULL << 32, 1ULL << 32})));
  CHECK_FALSE(decode_message_shape(record_of({1}, kDTypeCount)));
  CHECK_FALSE(decode_message_shape(record_of({1}, 0, 2)));
  CHECK_FALSE(decode_message_shape(record_of({1, 1, 1, 1, 1, 1, 1, 1, 1})));
}

TEST_CASE("random bytes never crash the decoders") {
  SimRandom random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random.below(90));
    for (auto& byte : bytes) byte = static_cast<std::byte>(random.below(4) == 0 ? random.next() : random.below(3));
    if (const auto shape = decode_message_shape(bytes)) CHECK(describe(*shape).size() > 3);
    if (const auto call = decode_call(bytes)) CHECK_FALSE(describe(*call).empty());
    if (bytes.size() < kFrameHeaderBytes) continue;
    FrameHeader header;
    (void)decode(bytes.data(), header);
    (void)check_preface(bytes.data());
  }
}
