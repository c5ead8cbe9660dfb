#include "native/agent/messages.hpp"

#include <protozero/pbf_message.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <type_traits>
#include <utility>

namespace ringlet::agent {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using Tag = protozero::pbf_tag_type;

// What each message consists of, told to a FieldWriter or a FieldReader.

template <class Told, class Expected>
concept Is = std::is_same_v<std::remove_const_t<Told>, Expected>;

void tell_fields(auto& fields, Is<Hail> auto& hail) {
  fields.number(1, hail.protocol);
  fields.text(2, hail.version);
  fields.text(3, hail.group);
  fields.text(4, hail.from);
  fields.text(5, hail.program);
  fields.text(6, hail.directory);
}

void tell_fields(auto& fields, Is<Offer> auto& offer) {
  fields.number(1, offer.protocol);
  fields.text(2, offer.version);
  fields.text(3, offer.name);
  fields.number(4, offer.free_ranks);
  fields.text(5, offer.refusal);
}

void tell_fields(auto& fields, Is<Open> auto& open) { fields.text(1, open.host); }

void tell_fields(auto& fields, Is<Opened> auto& opened) { fields.number(1, opened.port); }

void tell_fields(auto& fields, Is<Variable> auto& variable) {
  fields.text(1, variable.name);
  fields.text(2, variable.value);
}

void tell_fields(auto& fields, Is<Start> auto& start) {
  fields.fixed(1, start.job);
  fields.number(2, start.first_rank);
  fields.number(3, start.ranks);
  fields.number(4, start.world_size);
  fields.text(5, start.coordinator);
  fields.text(6, start.token);
  fields.text(7, start.program);
  fields.texts(8, start.arguments, kMaxArguments);
  fields.messages(9, start.environment, kMaxVariables);
  fields.text(10, start.directory);
  fields.number(11, start.grace_ms);
  fields.number(12, start.terminal_columns);
}

void tell_fields(auto& fields, Is<Started> auto& started) { fields.numbers(1, started.pids, kMaxRanksPerMachine); }

void tell_fields(auto& fields, Is<Failed> auto& failed) {
  fields.number(1, failed.exit_code);
  fields.text(2, failed.text);
}

void tell_fields(auto& fields, Is<Output> auto& output) {
  fields.number(1, output.rank);
  fields.flag(2, output.error);
  fields.text(3, output.data);
}

void tell_fields(auto& fields, Is<Credit> auto& credit) { fields.number(1, credit.bytes); }

void tell_fields(auto& fields, Is<Exit> auto& exit) {
  fields.number(1, exit.rank);
  fields.number(2, exit.code);
  fields.number(3, exit.signal);
  fields.flag(4, exit.stopped);
}

void tell_fields(auto& fields, Is<Order> auto& order) {
  fields.number(1, order.signal);
  fields.flag(2, order.stop);
  fields.number(3, order.grace_ms);
}

void tell_fields(auto&, Is<Over> auto&) {}
void tell_fields(auto&, Is<Beat> auto&) {}

void tell_fields(auto& fields, Is<Probe> auto& probe) {
  fields.number(1, probe.number);
  fields.text(2, probe.padding);
  fields.number(3, probe.answer_bytes);
}

void tell_fields(auto& fields, Is<Echo> auto& echo) {
  fields.number(1, echo.number);
  fields.fixed(2, echo.unix_ms);
  fields.text(3, echo.padding);
}

void tell_fields(auto& fields, Is<Survey> auto& survey) { fields.fixed_numbers(1, survey.instances, kMaxSurveyed); }

void tell_fields(auto& fields, Is<Reached> auto& reached) {
  fields.fixed(1, reached.instance);
  fields.fixed(2, reached.round_trip_ns);
  fields.fixed(3, reached.bytes_per_second);
  fields.text(4, reached.failure);
}

void tell_fields(auto& fields, Is<Surveyed> auto& surveyed) { fields.messages(1, surveyed.ways, kMaxSurveyed); }

/// Leaves fields with their default value out, as protoc's proto3 classes do.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : writer_(out) {}

  void number(Tag tag, std::uint32_t value) {
    if (value != 0) writer_.add_uint32(tag, value);
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
  void texts(Tag tag, const std::vector<std::string>& values, std::size_t) {
    for (const std::string& value : values) writer_.add_string(tag, value);
  }
  void numbers(Tag tag, const std::vector<std::uint32_t>& values, std::size_t) {
    writer_.add_packed_uint32(tag, values.begin(), values.end());
  }
  void fixed_numbers(Tag tag, const std::vector<std::uint64_t>& values, std::size_t) {
    writer_.add_packed_fixed64(tag, values.begin(), values.end());
  }
  template <class Part>
  void message(Tag tag, const Part& value) {
    std::string bytes;
    FieldWriter fields(bytes);
    tell_fields(fields, value);
    writer_.add_message(tag, bytes);
  }
  template <class Part>
  void messages(Tag tag, const std::vector<Part>& values, std::size_t) {
    for (const Part& value : values) message(tag, value);
  }

 private:
  pbf_writer writer_;
};

template <class Part>
Part read_message(pbf_reader reader);

/// Takes the one field at which `reader` stands, where it is one of those that it is told of.
class FieldReader {
 public:
  explicit FieldReader(pbf_reader& reader) : reader_(reader) {}

  bool taken() const { return taken_; }

  void number(Tag tag, std::uint32_t& value) {
    if (takes(tag, pbf_wire_type::varint)) value = reader_.get_uint32();
  }
  void fixed(Tag tag, std::uint64_t& value) {
    if (takes(tag, pbf_wire_type::fixed64)) value = reader_.get_fixed64();
  }
  void flag(Tag tag, bool& value) {
    // get_bool() reads behind the end.
    if (takes(tag, pbf_wire_type::varint)) value = reader_.get_uint64() != 0;
  }
  void text(Tag tag, std::string& value) {
    if (takes(tag, pbf_wire_type::length_delimited)) value = reader_.get_string();
  }
  void texts(Tag tag, std::vector<std::string>& values, std::size_t most) {
    if (takes(tag, pbf_wire_type::length_delimited)) add(values, reader_.get_string(), most);
  }
  void numbers(Tag tag, std::vector<std::uint32_t>& values, std::size_t most) {
    if (!takes(tag, pbf_wire_type::length_delimited)) return;
    for (const std::uint32_t value : reader_.get_packed_uint32()) add(values, value, most);
  }
  void fixed_numbers(Tag tag, std::vector<std::uint64_t>& values, std::size_t most) {
    if (!takes(tag, pbf_wire_type::length_delimited)) return;
    for (const std::uint64_t value : reader_.get_packed_fixed64()) add(values, value, most);
  }
  template <class Part>
  void messages(Tag tag, std::vector<Part>& values, std::size_t most) {
    if (takes(tag, pbf_wire_type::length_delimited)) add(values, read_message<Part>(reader_.get_message()), most);
  }

 private:
  template <class Value>
  static void add(std::vector<Value>& values, Value value, std::size_t most) {
    if (values.size() == most) throw protozero::exception();
    values.push_back(std::move(value));
  }
  bool takes(Tag tag, pbf_wire_type type) {
    // What has been taken leaves the reader behind the field.
    if (taken_ || reader_.tag() != tag || reader_.wire_type() != type) return false;
    taken_ = true;
    return true;
  }

  pbf_reader& reader_;
  bool taken_ = false;
};

template <class Part>
Part read_message(pbf_reader reader) {
  Part part{};
  while (reader.next()) {
    FieldReader field(reader);
    tell_fields(field, part);
    if (!field.taken()) reader.skip();
  }
  return part;
}

/// The kind with tag I + 1 is the I-th of the variant. False: none has this tag.
template <std::size_t... I>
bool read_kind(pbf_reader& reader, Message& message, std::index_sequence<I...>) {
  const Tag tag = reader.tag();
  const auto read = [&](auto index) {
    message = read_message<std::variant_alternative_t<index, Message>>(reader.get_message());
    return true;
  };
  return ((tag == I + 1 && read(std::integral_constant<std::size_t, I>{})) || ...);
}

}  // namespace

std::string encode(const Message& message) {
  std::string out;
  FieldWriter writer(out);
  std::visit([&](const auto& value) { writer.message(static_cast<Tag>(message.index() + 1), value); }, message);
  return out;
}

std::optional<Message> decode(ConstBytes bytes) {
  // protozero reports malformed input by exceptions; they end here.
  try {
    pbf_reader reader(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Message message = Beat{};  // of several, the last counts: Protobuf's rule for oneof
    while (reader.next()) {
      const bool known = reader.wire_type() == pbf_wire_type::length_delimited &&
                         read_kind(reader, message, std::make_index_sequence<std::variant_size_v<Message>>());
      if (!known) reader.skip();
    }
    return message;
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringlet::agent
