#include <catch2/catch.hpp>

#include "tests/core/control_reference.hpp"

using namespace ringlet;
using namespace ringlet::test;
using wire::ControlMessage;

namespace reference = ringlet_reference;

namespace {

std::optional<ControlMessage> decode(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  // The bytes are copied to memory of exactly their size, so that a sanitizer notices a read past their end.
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  return wire::decode_control(exact);
}

/// Whether a byte has turned into one of Protobuf's reserved field numbers, which only protozero refuses.
bool has_reserved_field(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i)
    if (unknown.field(i).number() >= 19'000 && unknown.field(i).number() <= 19'999) return true;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated() && has_reserved_field(reflection->GetMessage(message, field))) return true;
    for (int i = 0; field->is_repeated() && i < reflection->FieldSize(message, field); ++i)
      if (has_reserved_field(reflection->GetRepeatedMessage(message, field, i))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("control messages are byte for byte what protoc's classes write and read") {
  SimRandom random(1);
  for (int round = 0; round < 5000; ++round) {
    const ControlMessage message = random_message(random);
    const reference::ControlMessage expected = to_reference(message);
    const std::string ours = wire::encode_control(message);
    REQUIRE(ours == expected.SerializeAsString());
    reference::ControlMessage parsed;
    REQUIRE(parsed.ParseFromString(ours));
    REQUIRE(parsed.SerializeAsString() == ours);
    REQUIRE(decode(expected.SerializeAsString()) == message);
  }
}

TEST_CASE("messages without fields keep their kind") {
  for (const ControlMessage& message :
       {ControlMessage(wire::Ready{}), ControlMessage(wire::Begin{}), ControlMessage(wire::Welcome{0}), ControlMessage(wire::Join{}),
        ControlMessage(wire::SeatRequest{}), ControlMessage(wire::Connect{}), ControlMessage(wire::Propose{}),
        ControlMessage(wire::Nominate{}), ControlMessage(wire::Roster{0, {wire::Member{}}}), ControlMessage(wire::Abort{0, 0, ""}),
        ControlMessage(wire::Revoke{0, 0, 0, ""}), ControlMessage(wire::Query{}), ControlMessage(wire::Report{}),
        ControlMessage(wire::Proposal{}), ControlMessage(wire::Acceptance{}), ControlMessage(wire::Decision{}),
        ControlMessage(wire::Unheard{}), ControlMessage(wire::Knock{}), ControlMessage(wire::Ticket{})}) {
    CHECK(wire::encode_control(message).size() >= 2);
    CHECK(decode(wire::encode_control(message)) == message);
  }
}

TEST_CASE("unknown fields are skipped, unknown kinds refused") {
  const std::string unknown{"\xfa\x3f\x03xyz", 6};  // field 1023, three bytes
  SimRandom random(2);
  for (int round = 0; round < 500; ++round) {
    const ControlMessage message = random_message(random);
    REQUIRE(decode(unknown + wire::encode_control(message) + unknown) == message);
  }
  reference::ControlMessage inner;
  inner.mutable_welcome()->set_rank(4);
  inner.mutable_welcome()->GetReflection()->MutableUnknownFields(inner.mutable_welcome())->AddFixed32(99, 7);
  inner.mutable_welcome()->GetReflection()->MutableUnknownFields(inner.mutable_welcome())->AddVarint(98, 7);
  CHECK(decode(inner.SerializeAsString()) == ControlMessage(wire::Welcome{4}));
  CHECK_FALSE(decode(unknown));
  CHECK_FALSE(decode(""));
}

TEST_CASE("of several kinds the last counts, as Protobuf says") {
  const std::string both = wire::encode_control(wire::Ready{}) + wire::encode_control(wire::Welcome{3});
  CHECK(decode(both) == ControlMessage(wire::Welcome{3}));
}

TEST_CASE("truncated and random control messages never crash, and agree with protoc on what is readable") {
  google::protobuf::SetLogHandler(nullptr);  // it prints each text that is not UTF-8
  SimRandom random(4);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = wire::encode_control(random_message(random));
    for (std::size_t length = 0; length < std::min<std::size_t>(bytes.size(), 40); ++length) (void)decode(bytes.substr(0, length));
    for (auto changes = 1 + random.below(4); changes > 0; --changes) bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    const auto ours = decode(bytes);
    reference::ControlMessage theirs;
    if (!theirs.ParseFromString(bytes) || theirs.kind_case() == reference::ControlMessage::KIND_NOT_SET) continue;
    if (!has_reserved_field(theirs)) CHECK(ours.has_value());
  }
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random.below(40), 'x');
    for (char& letter : bytes) letter = static_cast<char>(random.below(2) == 0 ? random.below(48) : random.next());
    (void)decode(bytes);
  }
}

TEST_CASE("a flag whose value is cut off is not read") {
  CHECK_FALSE(decode(std::string("\x42\x01\x10")));  // a probe, field 2
  CHECK(decode(std::string("\x42\x03\x10\x80\x00", 5)) == ControlMessage(wire::LinkProbe{0, false, {}}));
}

TEST_CASE("lists of ranks are bounded") {
  const auto ranks = [](std::size_t count) { return std::vector<std::uint32_t>(count, 3); };
  CHECK(decode(wire::encode_control(wire::Decision{1, ranks(65'536), 2})));
  CHECK_FALSE(decode(wire::encode_control(wire::Decision{1, ranks(65'537), 2})));
  CHECK_FALSE(decode(wire::encode_control(wire::Proposal{1, 2, ranks(65'537), 3})));
  wire::Report report;
  for (auto* list : {&report.accepted, &report.hears, &report.dead}) {
    report.accepted.clear(), report.hears.clear(), report.dead.clear();
    *list = ranks(65'536);
    CHECK(decode(wire::encode_control(report)));
    *list = ranks(65'537);
    CHECK_FALSE(decode(wire::encode_control(report)));
  }
}

TEST_CASE("an abort carries a status, whatever its numbers") {
  const Status status{Errc::timed_out, "too late", 3};
  CHECK(wire::to_status(wire::to_abort(status)) == status);
  CHECK(wire::to_status({0, 2, "odd"}).code() == Errc::protocol_error);
  CHECK(wire::to_status({200, 2, "odd"}).code() == Errc::protocol_error);
  CHECK(wire::to_status({1, 2, std::string(100'000, 'x')}).text().size() == 4096);
  CHECK(wire::to_abort({Errc::mismatch, std::string(100'000, 'x'), 2}).text.size() == 4096);
}
