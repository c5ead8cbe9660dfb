#include "native/checkpoint/manifest_json.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

namespace ringlet::native {

namespace {

using nlohmann::json;

/// The bits of a number in hexadecimal, because JSON has no infinities and no NaN.
std::string bits_of(double value) { return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)); }

double double_from_bits(const std::string& name, const std::string& digits) {
  std::uint64_t bits = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, bits, 16);
  if (error != std::errc() || stop != end || digits.size() != 16)
    refuse_manifest(fmt::format("the value '{}' has the bits '{}'", name, digits));
  return std::bit_cast<double>(bits);
}

}  // namespace

void refuse_manifest(const std::string& what) { throw IoError({Errc::io_error, what}); }

const json& member(const json& object, const char* key, json::value_t type) {
  if (!object.is_object()) refuse_manifest(fmt::format("{} stands where an object with '{}' was expected", object.type_name(), key));
  const auto it = object.find(key);
  if (it == object.end()) refuse_manifest(fmt::format("'{}' is missing", key));
  if (it->type() != type) refuse_manifest(fmt::format("'{}' is of the type {}, not {}", key, it->type_name(), json(type).type_name()));
  return *it;
}

std::uint64_t unsigned_in(const json& number, const char* what, std::uint64_t most) {
  if (!number.is_number_unsigned()) refuse_manifest(fmt::format("'{}' is not a whole number of 0 or more", what));
  const auto value = number.get<std::uint64_t>();
  if (value > most) refuse_manifest(fmt::format("'{}' is {}; at most {} fits", what, value, most));
  return value;
}

std::uint64_t unsigned_member(const json& object, const char* key, std::uint64_t most) {
  return unsigned_in(member(object, key, json::value_t::number_unsigned), key, most);
}

const std::string& text_member(const json& object, const char* key) {
  return member(object, key, json::value_t::string).get_ref<const std::string&>();
}

const json& list_member(const json& object, const char* key) { return member(object, key, json::value_t::array); }

json to_json(const CheckpointValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return {{"type", "i64"}, {"value", std::to_string(*i)}};
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return {{"type", "u64"}, {"value", std::to_string(*u)}};
  if (const auto* d = std::get_if<double>(&value)) return {{"type", "double"}, {"value", fmt::format("{}", *d)}, {"bits", bits_of(*d)}};
  return {{"type", "text"}, {"value", std::get<std::string>(value)}};
}

CheckpointValue value_from_json(const std::string& name, const json& value) {
  const std::string& type = text_member(value, "type");
  const std::string& text = text_member(value, "value");
  const auto integer = [&](auto number) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size())
      refuse_manifest(fmt::format("the value '{}' is '{}', no {}", name, text, type));
    return number;
  };
  if (type == "i64") return integer(std::int64_t{});
  if (type == "u64") return integer(std::uint64_t{});
  if (type == "double") return double_from_bits(name, text_member(value, "bits"));
  if (type == "text") return text;
  refuse_manifest(fmt::format("the value '{}' is of the unknown type '{}'", name, type));
}

}  // namespace ringlet::native
