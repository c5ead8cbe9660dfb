#include "tools/pairing/message.hpp"

#include "core/wire/fields.hpp"
#include "tools/discovery/beacon.hpp"

namespace ringlet::pairing {

static void set_known(Message::Kind& kind, std::int32_t number) {
  const bool known = number > 0 && number <= static_cast<std::int32_t>(Message::Kind::refusal);
  kind = known ? static_cast<Message::Kind>(number) : Message::Kind::none;
}

static void set_known(Message::Reason& reason, std::int32_t number) {
  const bool known = number > 0 && number <= static_cast<std::int32_t>(Message::Reason::other_group);
  reason = known ? static_cast<Message::Reason>(number) : Message::Reason::unknown;
}

static void visit_fields(auto& fields, wire::Is<Message> auto& message) {
  fields.choice(1, message.kind);
  // Names that a terminal should not show are refused below, not mended.
  fields.bytes(2, message.group);
  fields.bytes(3, message.name);
  fields.bytes(4, message.salt);
  fields.bytes(5, message.number);
  fields.bytes(6, message.proof);
  fields.bytes(7, message.sealed_token);
  fields.choice(8, message.reason);
  fields.bytes(9, message.sealed_machine);
}

namespace {

bool is_absent_or(std::size_t length, const std::string& field) { return field.empty() || field.size() == length; }

bool is_within_bounds(const Message& message) {
  const std::size_t sealed = message.sealed_token.size(), machine = message.sealed_machine.size();
  constexpr std::size_t kFixedBytes = kSealBytes + kMachineKeyBytes;
  return message.kind != Message::Kind::none && (message.group.empty() || is_name(message.group)) &&
         (message.name.empty() || is_name(message.name)) && is_absent_or(kSaltBytes, message.salt) &&
         is_absent_or(kNumberBytes, message.number) && is_absent_or(kProofBytes, message.proof) &&
         (sealed == 0 || (sealed > kSealBytes && sealed <= kMaxTokenBytes + kSealBytes)) &&
         (machine == 0 || (machine > kFixedBytes && machine <= kFixedBytes + kMaxMachineNameBytes));
}

}  // namespace

std::string encode(const Message& message) {
  std::string bytes;
  wire::FieldWriter fields(bytes);
  visit_fields(fields, message);
  return bytes;
}

std::optional<Message> decode(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) return std::nullopt;
  // protozero reports malformed input by exceptions, which are caught here.
  try {
    auto message = wire::read_message<Message>(protozero::pbf_reader(bytes.data(), bytes.size()));
    if (is_within_bounds(message)) return message;
  } catch (const protozero::exception&) {
  }
  return std::nullopt;
}

bool is_name(const std::string& text) {
  discovery::Profile profile;
  profile.name = text;
  return !text.empty() && discovery::limited(profile).name == text;
}

}  // namespace ringlet::pairing
