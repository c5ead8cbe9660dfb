#pragma once

#include <cstdint>
#include <optional>
#include <protozero/pbf_message.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/printable.hpp"

/// Reads and writes plain structs as Protobuf messages. A message lists its fields once for both directions, in a function next to it that
/// argument-dependent lookup finds:
///
///   static void visit_fields(auto& fields, Is<Welcome> auto& welcome) { fields.number(1, welcome.rank); }
///
/// Only the .cpp files of codecs include this.
namespace ringlet::wire {

using Tag = protozero::pbf_tag_type;

template <class Told, class Message>
concept Is = std::is_same_v<std::remove_const_t<Told>, Message>;

/// Writes fields. It leaves out fields with their default value, as protoc's proto3 classes do.
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
  void fixed(Tag tag, std::uint64_t value) {
    if (value != 0) writer_.add_fixed64(tag, value);
  }
  void flag(Tag tag, bool value) {
    if (value) writer_.add_bool(tag, value);
  }
  void text(Tag tag, const std::string& value) {
    if (!value.empty()) writer_.add_string(tag, value);
  }
  void bytes(Tag tag, const std::string& value) {
    if (!value.empty()) writer_.add_bytes(tag, value);
  }
  template <class Choice>
  void choice(Tag tag, Choice value) {
    if (value != Choice{}) writer_.add_enum(tag, static_cast<std::int32_t>(value));
  }
  /// Does not use protozero's nested writer, which leaves out a message without fields.
  template <class Message>
  void message(Tag tag, const Message& value) {
    std::string bytes;
    FieldWriter fields(bytes);
    visit_fields(fields, value);
    writer_.add_message(tag, bytes);
  }
  // The last parameter is the most elements that the reader accepts of a repeated field.
  void numbers(Tag tag, const std::vector<std::uint32_t>& values, std::size_t) {
    writer_.add_packed_uint32(tag, values.begin(), values.end());
  }
  void fixed_numbers(Tag tag, const std::vector<std::uint64_t>& values, std::size_t) {
    writer_.add_packed_fixed64(tag, values.begin(), values.end());
  }
  void byte_strings(Tag tag, const std::vector<std::string>& values, std::size_t) {
    for (const std::string& value : values) writer_.add_bytes(tag, value);
  }
  template <class Message>
  void messages(Tag tag, const std::vector<Message>& values, std::size_t) {
    for (const Message& value : values) message(tag, value);
  }

 private:
  protozero::pbf_writer writer_;
};

template <class Message>
Message read_message(protozero::pbf_reader reader);

/// Reads the one field at which `reader` stands, if it is one of the fields that it is given. Throws protozero's exceptions.
class FieldReader {
 public:
  explicit FieldReader(protozero::pbf_reader& reader) : reader_(reader) {}

  bool taken() const { return taken_; }

  void number(Tag tag, std::uint32_t& value) {
    if (takes(tag, Type::varint)) value = reader_.get_uint32();
  }
  void number(Tag tag, std::uint64_t& value) {
    if (takes(tag, Type::varint)) value = reader_.get_uint64();
  }
  void number(Tag tag, std::int32_t& value) {
    if (takes(tag, Type::varint)) value = reader_.get_sint32();
  }
  void fixed(Tag tag, std::uint64_t& value) {
    if (takes(tag, Type::fixed64)) value = reader_.get_fixed64();
  }
  void flag(Tag tag, bool& value) {
    if (takes(tag, Type::varint)) value = reader_.get_uint64() != 0;  // get_bool() reads past the end
  }
  /// A text for people, or a name: nothing behind this line has to fear what it does to a terminal.
  void text(Tag tag, std::string& value) {
    if (takes(tag, Type::length_delimited)) value = printable(view_of(reader_.get_view()));
  }
  void bytes(Tag tag, std::string& value) {
    if (takes(tag, Type::length_delimited)) value = reader_.get_bytes();
  }
  /// `set_known(value, number)`, defined next to the enumeration, chooses the value for a number that this version may not know.
  template <class Choice>
  void choice(Tag tag, Choice& value) {
    if (takes(tag, Type::varint)) set_known(value, reader_.get_enum());
  }
  template <class Message>
  void message(Tag tag, Message& value) {
    if (takes(tag, Type::length_delimited)) value = read_message<Message>(reader_.get_message());
  }
  /// Reads packed numbers, as proto3 writes them.
  void numbers(Tag tag, std::vector<std::uint32_t>& values, std::size_t most) {
    if (!takes(tag, Type::length_delimited)) return;
    for (const std::uint32_t value : reader_.get_packed_uint32()) add(values, value, most);
  }
  void fixed_numbers(Tag tag, std::vector<std::uint64_t>& values, std::size_t most) {
    if (!takes(tag, Type::length_delimited)) return;
    for (const std::uint64_t value : reader_.get_packed_fixed64()) add(values, value, most);
  }
  void byte_strings(Tag tag, std::vector<std::string>& values, std::size_t most) {
    if (takes(tag, Type::length_delimited)) add(values, reader_.get_bytes(), most);
  }
  template <class Message>
  void messages(Tag tag, std::vector<Message>& values, std::size_t most) {
    if (takes(tag, Type::length_delimited)) add(values, read_message<Message>(reader_.get_message()), most);
  }

 private:
  using Type = protozero::pbf_wire_type;

  static std::string_view view_of(protozero::data_view view) { return {view.data(), view.size()}; }
  template <class Value>
  static void add(std::vector<Value>& values, Value value, std::size_t most) {
    if (values.size() == most) throw protozero::exception();
    values.push_back(std::move(value));
  }
  bool takes(Tag tag, Type type) {
    // Once a field has been read, the reader stands behind it.
    if (taken_ || reader_.tag() != tag || reader_.wire_type() != type) return false;
    taken_ = true;
    return true;
  }

  protozero::pbf_reader& reader_;
  bool taken_ = false;
};

/// Reads a whole message. Throws protozero's exceptions.
template <class Message>
Message read_message(protozero::pbf_reader reader) {
  Message message{};
  // An absent field must be read as 0 even if the struct has another default.
  if constexpr (requires { clear(message); }) clear(message);
  while (reader.next()) {
    FieldReader field(reader);
    visit_fields(field, message);
    if (!field.taken()) reader.skip();
  }
  return message;
}

/// Writes a oneof: the alternative with index I has tag I + 1.
template <class... Kinds>
std::string encode_one_of(const std::variant<Kinds...>& message) {
  std::string out;
  FieldWriter writer(out);
  std::visit([&](const auto& value) { writer.message(static_cast<Tag>(message.index() + 1), value); }, message);
  return out;
}

/// Returns false if no alternative has the tag at which `reader` stands.
template <class OneOf, std::size_t... I>
bool read_kind(protozero::pbf_reader& reader, std::optional<OneOf>& message, std::index_sequence<I...>) {
  const Tag tag = reader.tag();
  const auto read = [&](auto index) {
    message = read_message<std::variant_alternative_t<index, OneOf>>(reader.get_message());
    return true;
  };
  return ((tag == I + 1 && read(std::integral_constant<std::size_t, I>{})) || ...);
}

/// Returns nothing for malformed bytes. `otherwise` is returned for a message without an alternative that this version knows.
template <class OneOf>
std::optional<OneOf> decode_one_of(ConstBytes bytes, std::optional<OneOf> otherwise = {}) {
  // protozero reports malformed input by exceptions; they end here.
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::optional<OneOf> message = std::move(otherwise);  // if there are several, the last counts, as Protobuf requires
    while (reader.next()) {
      const bool known = reader.wire_type() == protozero::pbf_wire_type::length_delimited &&
                         read_kind(reader, message, std::make_index_sequence<std::variant_size_v<OneOf>>());
      if (!known) reader.skip();
    }
    return message;
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringlet::wire
