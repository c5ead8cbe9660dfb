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

/// Protobuf messages out of plain structs. A message says what it consists of once, for both ways, in a function beside it that argument-
/// dependent lookup finds:
///
///   static void tell_fields(auto& fields, Is<Welcome> auto& welcome) { fields.number(1, welcome.rank); }
///
/// Only the .cpp files of codecs include this.
namespace ringlet::wire {

using Tag = protozero::pbf_tag_type;

template <class Told, class Message>
concept Is = std::is_same_v<std::remove_const_t<Told>, Message>;

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
  /// Not protozero's nested writer: that one leaves a message without fields out altogether.
  template <class Message>
  void message(Tag tag, const Message& value) {
    std::string bytes;
    FieldWriter fields(bytes);
    tell_fields(fields, value);
    writer_.add_message(tag, bytes);
  }
  // Of repeated fields the reader takes so many at most.
  void numbers(Tag tag, const std::vector<std::uint32_t>& values, std::size_t) {
    writer_.add_packed_uint32(tag, values.begin(), values.end());
  }
  void fixed_numbers(Tag tag, const std::vector<std::uint64_t>& values, std::size_t) {
    writer_.add_packed_fixed64(tag, values.begin(), values.end());
  }
  void texts(Tag tag, const std::vector<std::string>& values, std::size_t) {
    for (const std::string& value : values) writer_.add_string(tag, value);
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

/// Takes the one field at which `reader` stands, where it is one of those that it is told of. Throws protozero's exceptions.
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
    if (takes(tag, Type::varint)) value = reader_.get_uint64() != 0;  // get_bool() reads behind the end
  }
  void text(Tag tag, std::string& value) {
    if (takes(tag, Type::length_delimited)) value = reader_.get_string();
  }
  /// `set_known(value, number)`, beside the enumeration, says what a number is that this version may not know.
  template <class Choice>
  void choice(Tag tag, Choice& value) {
    if (takes(tag, Type::varint)) set_known(value, reader_.get_enum());
  }
  template <class Message>
  void message(Tag tag, Message& value) {
    if (takes(tag, Type::length_delimited)) value = read_message<Message>(reader_.get_message());
  }
  /// Packed, as proto3 writes them.
  void numbers(Tag tag, std::vector<std::uint32_t>& values, std::size_t most) {
    if (!takes(tag, Type::length_delimited)) return;
    for (const std::uint32_t value : reader_.get_packed_uint32()) add(values, value, most);
  }
  void fixed_numbers(Tag tag, std::vector<std::uint64_t>& values, std::size_t most) {
    if (!takes(tag, Type::length_delimited)) return;
    for (const std::uint64_t value : reader_.get_packed_fixed64()) add(values, value, most);
  }
  void texts(Tag tag, std::vector<std::string>& values, std::size_t most) {
    if (takes(tag, Type::length_delimited)) add(values, reader_.get_string(), most);
  }
  template <class Message>
  void messages(Tag tag, std::vector<Message>& values, std::size_t most) {
    if (takes(tag, Type::length_delimited)) add(values, read_message<Message>(reader_.get_message()), most);
  }

 private:
  using Type = protozero::pbf_wire_type;

  template <class Value>
  static void add(std::vector<Value>& values, Value value, std::size_t most) {
    if (values.size() == most) throw protozero::exception();
    values.push_back(std::move(value));
  }
  bool takes(Tag tag, Type type) {
    // What has been taken leaves the reader behind the field.
    if (taken_ || reader_.tag() != tag || reader_.wire_type() != type) return false;
    taken_ = true;
    return true;
  }

  protozero::pbf_reader& reader_;
  bool taken_ = false;
};

/// Throws protozero's exceptions.
template <class Message>
Message read_message(protozero::pbf_reader reader) {
  Message message{};
  // For defaults that are not what a field is on the wire which was left out.
  if constexpr (requires { clear(message); }) clear(message);
  while (reader.next()) {
    FieldReader field(reader);
    tell_fields(field, message);
    if (!field.taken()) reader.skip();
  }
  return message;
}

/// A oneof: the I-th kind has tag I + 1.
template <class... Kinds>
std::string encode_one_of(const std::variant<Kinds...>& message) {
  std::string out;
  FieldWriter writer(out);
  std::visit([&](const auto& value) { writer.message(static_cast<Tag>(message.index() + 1), value); }, message);
  return out;
}

/// False: none has the tag at which `reader` stands.
template <class OneOf, std::size_t... I>
bool read_kind(protozero::pbf_reader& reader, std::optional<OneOf>& message, std::index_sequence<I...>) {
  const Tag tag = reader.tag();
  const auto read = [&](auto index) {
    message = read_message<std::variant_alternative_t<index, OneOf>>(reader.get_message());
    return true;
  };
  return ((tag == I + 1 && read(std::integral_constant<std::size_t, I>{})) || ...);
}

/// Nothing: malformed. `otherwise`: what a message is that has no kind which this version knows.
template <class OneOf>
std::optional<OneOf> decode_one_of(ConstBytes bytes, std::optional<OneOf> otherwise = {}) {
  // protozero reports malformed input by exceptions; they end here.
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::optional<OneOf> message = std::move(otherwise);  // of several, the last counts: Protobuf's rule
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
