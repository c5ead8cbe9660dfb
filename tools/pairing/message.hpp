#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringlet::pairing {

// This is the message of proto/pairing.proto as a value.

inline constexpr std::size_t kSaltBytes = 16, kNumberBytes = 384, kProofBytes = 32, kMaxTokenBytes = 1'024, kSealBytes = 16;
inline constexpr std::size_t kMachineKeyBytes = 32, kMaxMachineNameBytes = 64;
inline constexpr std::size_t kMaxMessageBytes = 2'048;

struct Message {
  enum class Kind : std::uint8_t { none = 0, hello = 1, challenge = 2, answer = 3, delivery = 4, receipt = 5, refusal = 6 };
  enum class Reason : std::uint8_t { unknown = 0, wrong_code = 1, other_group = 2 };
  Kind kind = Kind::none;
  std::string group{};
  std::string name{};
  std::string salt{};
  std::string number{};
  std::string proof{};
  std::string sealed_token{};
  Reason reason = Reason::unknown;
  std::string sealed_machine{};
  friend bool operator==(const Message&, const Message&) = default;
};

/// How a machine is known to others: by its name and its public key.
struct PairedMachine {
  std::string name;
  std::string key;  // kMachineKeyBytes
  friend bool operator==(const PairedMachine&, const PairedMachine&) = default;
};

/// Returns the message without its length.
std::string encode(const Message& message);

/// Returns nothing if the bytes are not a message, if a field is too long or does not have its fixed length, or if a text is not UTF-8 or
/// has control characters.
std::optional<Message> decode(std::string_view bytes);

/// Tells whether the text may be the name of a group or a machine.
bool is_name(const std::string& text);

}  // namespace ringlet::pairing
