#include "core/wire/control.hpp"

#include <protozero/pbf_message.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace ringlet::wire {

namespace {

constexpr std::size_t kMaxMembers = 65'536;
constexpr std::size_t kMaxAbortText = 4'096;

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using protozero::tag_and_type;

// Fields with their default value are left out, as protoc's proto3 classes do.
void put_uint(pbf_writer& writer, protozero::pbf_tag_type tag, std::uint32_t value) {
  if (value != 0) writer.add_uint32(tag, value);
}
void put_uint64(pbf_writer& writer, protozero::pbf_tag_type tag, std::uint64_t value) {
  if (value != 0) writer.add_uint64(tag, value);
}
void put_text(pbf_writer& writer, protozero::pbf_tag_type tag, const std::string& value) {
  if (!value.empty()) writer.add_string(tag, value);
}
void put_fixed(pbf_writer& writer, protozero::pbf_tag_type tag, std::uint64_t value) {
  if (value != 0) writer.add_fixed64(tag, value);
}

// Not protozero's nested writer: that one leaves a message without fields out altogether.
template <class WriteFields>
void put_message(pbf_writer& writer, protozero::pbf_tag_type tag, WriteFields write_fields) {
  std::string fields;
  pbf_writer nested(fields);
  write_fields(nested);
  writer.add_message(tag, fields);
}

void write(pbf_writer& writer, const Hello& hello) {
  if (hello.purpose != Hello::Purpose::join) writer.add_enum(1, static_cast<std::int32_t>(hello.purpose));
  put_uint(writer, 2, hello.rank);
  put_uint(writer, 3, hello.world_size);
  put_text(writer, 4, hello.host);
  put_uint(writer, 5, hello.port);
  put_fixed(writer, 6, hello.world_id);
  put_uint(writer, 7, hello.guests);
  put_text(writer, 8, hello.name);
}
void write(pbf_writer& writer, const Member& member) {
  put_uint(writer, 1, member.rank);
  put_text(writer, 2, member.host);
  put_uint(writer, 3, member.port);
  put_text(writer, 4, member.name);
}
void write(pbf_writer& writer, const Roster& roster) {
  put_fixed(writer, 1, roster.world_id);
  for (const auto& member : roster.members) put_message(writer, 2, [&](pbf_writer& nested) { write(nested, member); });
}
void write(pbf_writer& writer, const Welcome& welcome) { put_uint(writer, 1, welcome.rank); }
void write(pbf_writer&, const Ready&) {}
void write(pbf_writer&, const Begin&) {}
void write(pbf_writer& writer, const Abort& abort) {
  put_uint(writer, 1, abort.code);
  if (abort.rank != 0) writer.add_sint32(2, abort.rank);
  put_text(writer, 3, abort.text);
}

void write(pbf_writer& writer, const Question& question) {
  put_uint(writer, 1, question.number);
  put_uint(writer, 2, question.group);
  put_uint(writer, 3, question.stream);
  put_uint64(writer, 4, question.sequence);
}
void write(pbf_writer& writer, const Answer& answer) {
  put_uint(writer, 1, answer.number);
  if (answer.standing != Answer::Standing::not_called) writer.add_enum(2, static_cast<std::int32_t>(answer.standing));
  put_uint(writer, 3, answer.rank);
  put_uint64(writer, 4, answer.sequence);
}

void write(pbf_writer& writer, const Seat& seat) {
  put_uint(writer, 1, seat.rank);
  put_uint(writer, 2, seat.world_size);
  put_uint(writer, 3, seat.guests);
  put_uint(writer, 4, seat.present);
  put_uint(writer, 5, seat.heartbeat_timeout_ms);
  put_uint(writer, 6, seat.wait_ms);
}

/// A purpose that this version does not know is taken for the first, whose other fields will not fit.
Hello::Purpose to_purpose(std::int32_t number) {
  if (number == 1) return Hello::Purpose::link;
  return number == 2 ? Hello::Purpose::guest : Hello::Purpose::join;
}

Hello read_hello(pbf_reader reader) {
  Hello hello;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        hello.purpose = to_purpose(reader.get_enum());
        break;
      case tag_and_type(2, pbf_wire_type::varint):
        hello.rank = reader.get_uint32();
        break;
      case tag_and_type(3, pbf_wire_type::varint):
        hello.world_size = reader.get_uint32();
        break;
      case tag_and_type(4, pbf_wire_type::length_delimited):
        hello.host = reader.get_string();
        break;
      case tag_and_type(5, pbf_wire_type::varint):
        hello.port = reader.get_uint32();
        break;
      case tag_and_type(6, pbf_wire_type::fixed64):
        hello.world_id = reader.get_fixed64();
        break;
      case tag_and_type(7, pbf_wire_type::varint):
        hello.guests = reader.get_uint32();
        break;
      case tag_and_type(8, pbf_wire_type::length_delimited):
        hello.name = reader.get_string();
        break;
      default:
        reader.skip();
    }
  }
  return hello;
}

Member read_member(pbf_reader reader) {
  Member member;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        member.rank = reader.get_uint32();
        break;
      case tag_and_type(2, pbf_wire_type::length_delimited):
        member.host = reader.get_string();
        break;
      case tag_and_type(3, pbf_wire_type::varint):
        member.port = reader.get_uint32();
        break;
      case tag_and_type(4, pbf_wire_type::length_delimited):
        member.name = reader.get_string();
        break;
      default:
        reader.skip();
    }
  }
  return member;
}

std::optional<Roster> read_roster(pbf_reader reader) {
  Roster roster;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::fixed64):
        roster.world_id = reader.get_fixed64();
        break;
      case tag_and_type(2, pbf_wire_type::length_delimited):
        if (roster.members.size() >= kMaxMembers) return std::nullopt;
        roster.members.push_back(read_member(reader.get_message()));
        break;
      default:
        reader.skip();
    }
  }
  return roster;
}

Welcome read_welcome(pbf_reader reader) {
  Welcome welcome;
  while (reader.next()) {
    if (reader.tag_and_type() == tag_and_type(1, pbf_wire_type::varint))
      welcome.rank = reader.get_uint32();
    else
      reader.skip();
  }
  return welcome;
}

void read_empty(pbf_reader reader) {
  while (reader.next()) reader.skip();
}

Abort read_abort(pbf_reader reader) {
  Abort abort;
  abort.rank = 0;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        abort.code = reader.get_uint32();
        break;
      case tag_and_type(2, pbf_wire_type::varint):
        abort.rank = reader.get_sint32();
        break;
      case tag_and_type(3, pbf_wire_type::length_delimited):
        abort.text = reader.get_string();
        break;
      default:
        reader.skip();
    }
  }
  return abort;
}

Question read_question(pbf_reader reader) {
  Question question;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        question.number = reader.get_uint32();
        break;
      case tag_and_type(2, pbf_wire_type::varint):
        question.group = reader.get_uint32();
        break;
      case tag_and_type(3, pbf_wire_type::varint):
        question.stream = reader.get_uint32();
        break;
      case tag_and_type(4, pbf_wire_type::varint):
        question.sequence = reader.get_uint64();
        break;
      default:
        reader.skip();
    }
  }
  return question;
}

/// A standing that this version does not know says no more than `done`.
Answer::Standing to_standing(std::int32_t number) {
  if (number == 0) return Answer::Standing::not_called;
  return number == 1 ? Answer::Standing::waits : Answer::Standing::done;
}

Answer read_answer(pbf_reader reader) {
  Answer answer;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        answer.number = reader.get_uint32();
        break;
      case tag_and_type(2, pbf_wire_type::varint):
        answer.standing = to_standing(reader.get_enum());
        break;
      case tag_and_type(3, pbf_wire_type::varint):
        answer.rank = reader.get_uint32();
        break;
      case tag_and_type(4, pbf_wire_type::varint):
        answer.sequence = reader.get_uint64();
        break;
      default:
        reader.skip();
    }
  }
  return answer;
}

Seat read_seat(pbf_reader reader) {
  Seat seat;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        seat.rank = reader.get_uint32();
        break;
      case tag_and_type(2, pbf_wire_type::varint):
        seat.world_size = reader.get_uint32();
        break;
      case tag_and_type(3, pbf_wire_type::varint):
        seat.guests = reader.get_uint32();
        break;
      case tag_and_type(4, pbf_wire_type::varint):
        seat.present = reader.get_uint32();
        break;
      case tag_and_type(5, pbf_wire_type::varint):
        seat.heartbeat_timeout_ms = reader.get_uint32();
        break;
      case tag_and_type(6, pbf_wire_type::varint):
        seat.wait_ms = reader.get_uint32();
        break;
      default:
        reader.skip();
    }
  }
  return seat;
}

std::optional<ControlMessage> read_control(pbf_reader reader) {
  std::optional<ControlMessage> message;  // of several, the last counts: Protobuf's rule for oneof
  while (reader.next()) {
    if (reader.wire_type() != pbf_wire_type::length_delimited) {
      reader.skip();
      continue;
    }
    switch (reader.tag()) {
      case 1:
        message = read_hello(reader.get_message());
        break;
      case 2: {
        auto roster = read_roster(reader.get_message());
        if (!roster) return std::nullopt;
        message = std::move(*roster);
        break;
      }
      case 3:
        message = read_welcome(reader.get_message());
        break;
      case 4:
        read_empty(reader.get_message());
        message = Ready{};
        break;
      case 5:
        read_empty(reader.get_message());
        message = Begin{};
        break;
      case 6:
        message = read_abort(reader.get_message());
        break;
      case 7:
        message = read_question(reader.get_message());
        break;
      case 8:
        message = read_answer(reader.get_message());
        break;
      case 9:
        message = read_seat(reader.get_message());
        break;
      default:
        reader.skip();
    }
  }
  return message;
}

}  // namespace

std::string encode_control(const ControlMessage& message) {
  std::string out;
  pbf_writer writer(out);
  put_message(writer, static_cast<protozero::pbf_tag_type>(message.index() + 1),
              [&](pbf_writer& nested) { std::visit([&](const auto& value) { write(nested, value); }, message); });
  return out;
}

std::optional<ControlMessage> decode_control(ConstBytes bytes) {
  // protozero reports malformed input by exceptions; they end here.
  try {
    return read_control(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

Abort to_abort(const Status& status) {
  return {static_cast<std::uint32_t>(status.code()), status.rank(), status.text().substr(0, kMaxAbortText)};
}

Status to_status(const Abort& abort) {
  const bool known = abort.code > 0 && abort.code <= static_cast<std::uint32_t>(Errc::io_error);
  return {known ? static_cast<Errc>(abort.code) : Errc::protocol_error, abort.text.substr(0, kMaxAbortText), abort.rank};
}

}  // namespace ringlet::wire
