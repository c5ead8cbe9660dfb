#include "core/wire/control.hpp"

#include <protozero/pbf_message.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <type_traits>
#include <utility>

namespace ringlet::wire {

namespace {

constexpr std::size_t kMaxMembers = 65'536;
constexpr std::size_t kMaxOffers = 64;
constexpr std::size_t kMaxAbortText = 4'096;
constexpr std::size_t kMaxRunning = 64;
constexpr std::size_t kMaxAwaited = 1'024;

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using Tag = protozero::pbf_tag_type;

// What each message consists of, told to a FieldWriter or a FieldReader.

template <class Message, class Expected>
concept Is = std::is_same_v<std::remove_const_t<Message>, Expected>;

void tell_fields(auto& fields, Is<Offer> auto& offer) {
  fields.text(1, offer.host);
  fields.number(2, offer.port);
  fields.text(3, offer.interface);
  fields.choice(4, offer.kind);
  fields.number(5, offer.speed_mbps);
}

void tell_fields(auto& fields, Is<Path> auto& path) {
  fields.text(1, path.dialler_interface);
  fields.text(2, path.acceptor_interface);
  fields.choice(3, path.kind);
  fields.number(4, path.speed_mbps);
  fields.number(5, path.round_trip_ns);
  fields.number(6, path.byte_ps);
  fields.number(7, path.tried);
}

void tell_fields(auto& fields, Is<Hello> auto& hello) {
  fields.choice(1, hello.purpose);
  fields.number(2, hello.rank);
  fields.number(3, hello.world_size);
  fields.text(4, hello.host);
  fields.number(5, hello.port);
  fields.fixed(6, hello.world_id);
  fields.number(7, hello.guests);
  fields.text(8, hello.name);
  fields.number(9, hello.policy);
  fields.messages(10, hello.offers, kMaxOffers);
  fields.number(11, hello.to);
  fields.message(12, hello.path);
}

void tell_fields(auto& fields, Is<Member> auto& member) {
  fields.number(1, member.rank);
  fields.text(2, member.host);
  fields.number(3, member.port);
  fields.text(4, member.name);
  fields.messages(5, member.offers, kMaxOffers);
}

void tell_fields(auto& fields, Is<Roster> auto& roster) {
  fields.fixed(1, roster.world_id);
  fields.messages(2, roster.members, kMaxMembers);
}

void tell_fields(auto& fields, Is<Welcome> auto& welcome) { fields.number(1, welcome.rank); }

void tell_fields(auto& fields, Is<LinkCosts> auto& costs) {
  fields.number(1, costs.native_latency_ns);
  fields.number(2, costs.native_byte_ps);
  fields.number(3, costs.guest_latency_ns);
  fields.number(4, costs.guest_byte_ps);
}

void tell_fields(auto& fields, Is<Placement> auto& placement) {
  fields.number(1, placement.policy);
  fields.message(2, placement.costs);
  fields.number(3, placement.exchange_bytes);
  fields.number(4, placement.direct_bytes);
}

void tell_fields(auto& fields, Is<Ready> auto& ready) { fields.message(1, ready.measured); }

void tell_fields(auto& fields, Is<Begin> auto& begin) { fields.message(1, begin.placement); }

void tell_fields(auto& fields, Is<Abort> auto& abort) {
  fields.number(1, abort.code);
  fields.number(2, abort.rank);
  fields.text(3, abort.text);
}

void tell_fields(auto& fields, Is<Question> auto& question) {
  fields.number(1, question.number);
  fields.number(2, question.group);
  fields.number(3, question.stream);
  fields.number(4, question.sequence);
}

void tell_fields(auto& fields, Is<Answer> auto& answer) {
  fields.number(1, answer.number);
  fields.choice(2, answer.standing);
  fields.number(3, answer.rank);
  fields.number(4, answer.sequence);
}

void tell_fields(auto& fields, Is<Seat> auto& seat) {
  fields.number(1, seat.rank);
  fields.number(2, seat.world_size);
  fields.number(3, seat.guests);
  fields.number(4, seat.present);
  fields.number(5, seat.heartbeat_timeout_ms);
  fields.number(6, seat.wait_ms);
}

void tell_fields(auto& fields, Is<Probe> auto& probe) {
  fields.number(1, probe.number);
  fields.flag(2, probe.answer);
  fields.text(3, probe.padding);
}

void tell_fields(auto& fields, Is<OperationState> auto& operation) {
  fields.text(1, operation.call);
  fields.number(2, operation.number);
  fields.number(3, operation.stream);
  fields.text(4, operation.group);
  fields.number(5, operation.milliseconds);
  fields.number(6, operation.received);
  fields.number(7, operation.to_receive);
  fields.number(8, operation.sent);
  fields.number(9, operation.to_send);
  fields.numbers(10, operation.waits_for, kMaxAwaited);
}

void tell_fields(auto& fields, Is<StateQuestion> auto& question) {
  fields.number(1, question.number);
  fields.flag(2, question.about_operation);
  fields.number(3, question.group);
  fields.number(4, question.stream);
  fields.number(5, question.sequence);
}

void tell_fields(auto& fields, Is<RankState> auto& state) {
  fields.number(1, state.number);
  fields.choice(2, state.arrival);
  fields.messages(3, state.running, kMaxRunning);
  fields.message(4, state.last);
  fields.number(5, state.operations);
  fields.number(6, state.bytes_sent);
  fields.number(7, state.bytes_received);
  fields.text(8, state.host);
  fields.text(9, state.program);
  fields.number(10, state.pid);
  fields.text(11, state.links);
  fields.flag(12, state.stalled);
}

/// Leaves fields with their default value out, as protoc's proto3 classes do.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : writer_(out) {}

  void number(Tag tag, std::uint32_t value) {
    if (value != 0) writer_.add_uint32(tag, value);
  }
  void number(Tag tag, std::uint64_t value) {
    if (value != 0) writer_.add_uint64(tag, value);
  }
  void number(Tag tag, std::int32_t value) {
    if (value != 0) writer_.add_sint32(tag, value);
  }
  void numbers(Tag tag, const std::vector<std::uint32_t>& values, std::size_t) {
    writer_.add_packed_uint32(tag, values.begin(), values.end());
  }
  void fixed(Tag tag, std::uint64_t value) {
    if (value != 0) writer_.add_fixed64(tag, value);
  }
  void flag(Tag tag, bool value) {
    if (value) writer_.add_bool(tag, value);
  }
  void text(Tag tag, const std::string& value) {
    if (!value.empty()) writer_.add_string(tag, value);
  }
  template <class Choice>
  void choice(Tag tag, Choice value) {
    if (value != Choice{}) writer_.add_enum(tag, static_cast<std::int32_t>(value));
  }
  // Not protozero's nested writer: that one leaves a message without fields out altogether.
  template <class Message>
  void message(Tag tag, const Message& value) {
    std::string bytes;
    FieldWriter fields(bytes);
    tell_fields(fields, value);
    writer_.add_message(tag, bytes);
  }
  template <class Message>
  void messages(Tag tag, const std::vector<Message>& values, std::size_t) {
    for (const Message& value : values) message(tag, value);
  }

 private:
  pbf_writer writer_;
};

void set_known(Offer::Kind& kind, std::int32_t number) {
  kind = number == 1 ? Offer::Kind::wired : number == 2 ? Offer::Kind::wireless : Offer::Kind::unknown;
}

/// A purpose that this version does not know is taken for the first, whose other fields will not fit.
void set_known(Hello::Purpose& purpose, std::int32_t number) {
  purpose = number >= 1 && number <= 3 ? static_cast<Hello::Purpose>(number) : Hello::Purpose::join;
}

/// A standing that this version does not know says no more than `done`.
void set_known(Answer::Standing& standing, std::int32_t number) {
  standing = number == 0 ? Answer::Standing::not_called : number == 1 ? Answer::Standing::waits : Answer::Standing::done;
}

/// Nor does an arrival.
void set_known(RankState::Arrival& arrival, std::int32_t number) {
  arrival = number == 0 ? RankState::Arrival::not_arrived : number == 1 ? RankState::Arrival::arrived : RankState::Arrival::done;
}

template <class Message>
Message read_message(pbf_reader reader);

/// Takes the one field at which `reader` stands, where it is one of those that it is told of.
class FieldReader {
 public:
  explicit FieldReader(pbf_reader& reader) : reader_(reader) {}

  bool taken() const { return taken_; }

  void number(Tag tag, std::uint32_t& value) {
    if (takes(tag, pbf_wire_type::varint)) value = reader_.get_uint32();
  }
  void number(Tag tag, std::uint64_t& value) {
    if (takes(tag, pbf_wire_type::varint)) value = reader_.get_uint64();
  }
  void number(Tag tag, std::int32_t& value) {
    if (takes(tag, pbf_wire_type::varint)) value = reader_.get_sint32();
  }
  /// Packed, as proto3 writes them.
  void numbers(Tag tag, std::vector<std::uint32_t>& values, std::size_t most) {
    if (!takes(tag, pbf_wire_type::length_delimited)) return;
    const auto read = reader_.get_packed_uint32();
    for (auto number = read.begin(); number != read.end(); ++number) {
      if (values.size() == most) throw protozero::exception();
      values.push_back(*number);
    }
  }
  void fixed(Tag tag, std::uint64_t& value) {
    if (takes(tag, pbf_wire_type::fixed64)) value = reader_.get_fixed64();
  }
  void flag(Tag tag, bool& value) {
    if (takes(tag, pbf_wire_type::varint)) value = reader_.get_uint64() != 0;  // get_bool() reads behind the end
  }
  void text(Tag tag, std::string& value) {
    if (takes(tag, pbf_wire_type::length_delimited)) value = reader_.get_string();
  }
  template <class Choice>
  void choice(Tag tag, Choice& value) {
    if (takes(tag, pbf_wire_type::varint)) set_known(value, reader_.get_enum());
  }
  template <class Message>
  void message(Tag tag, Message& value) {
    if (takes(tag, pbf_wire_type::length_delimited)) value = read_message<Message>(reader_.get_message());
  }
  template <class Message>
  void messages(Tag tag, std::vector<Message>& values, std::size_t most) {
    if (!takes(tag, pbf_wire_type::length_delimited)) return;
    if (values.size() == most) throw protozero::exception();
    values.push_back(read_message<Message>(reader_.get_message()));
  }

 private:
  bool takes(Tag tag, pbf_wire_type type) {
    // What has been taken leaves the reader behind the field.
    if (taken_ || reader_.tag() != tag || reader_.wire_type() != type) return false;
    taken_ = true;
    return true;
  }

  pbf_reader& reader_;
  bool taken_ = false;
};

template <class Message>
Message read_message(pbf_reader reader) {
  Message message{};
  // On the wire a number that is left out is 0.
  if constexpr (std::is_same_v<Message, Abort>) message.rank = 0;
  while (reader.next()) {
    FieldReader field(reader);
    tell_fields(field, message);
    if (!field.taken()) reader.skip();
  }
  return message;
}

/// The kind with tag I + 1 is the I-th of the variant. False: none has this tag.
template <std::size_t... I>
bool read_kind(Tag tag, pbf_reader& reader, std::optional<ControlMessage>& message, std::index_sequence<I...>) {
  const auto read = [&](auto index) {
    message = read_message<std::variant_alternative_t<index, ControlMessage>>(reader.get_message());
    return true;
  };
  return ((tag == I + 1 && read(std::integral_constant<std::size_t, I>{})) || ...);
}

std::optional<ControlMessage> read_control(pbf_reader reader) {
  constexpr std::make_index_sequence<std::variant_size_v<ControlMessage>> kKinds;
  std::optional<ControlMessage> message;  // of several, the last counts: Protobuf's rule for oneof
  while (reader.next()) {
    const bool known = reader.wire_type() == pbf_wire_type::length_delimited && read_kind(reader.tag(), reader, message, kKinds);
    if (!known) reader.skip();
  }
  return message;
}

}  // namespace

std::string encode_control(const ControlMessage& message) {
  std::string out;
  FieldWriter writer(out);
  std::visit([&](const auto& value) { writer.message(static_cast<Tag>(message.index() + 1), value); }, message);
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
