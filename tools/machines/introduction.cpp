#include "tools/machines/introduction.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "core/wire/frame.hpp"

namespace ringlet::machines {

namespace {

constexpr std::string_view kLabel = "ringlet machine introduction 1";

ConstBytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

template <std::size_t bytes>
std::string text_of(const std::array<std::byte, bytes>& array) {
  return {reinterpret_cast<const char*>(array.data()), array.size()};
}

/// Texts stand behind their lengths, so that no two introductions give the same bytes.
std::string statement(Part part, std::string_view group, std::string_view name, const LinkBinding& binding) {
  std::string message(kLabel);
  message += static_cast<char>(part);
  for (const std::string_view text : {group, name}) {
    std::array<std::byte, 4> length{};
    detail::store_le(length.data(), static_cast<std::uint32_t>(text.size()));
    message.append(text_of(length)).append(text);
  }
  return message + text_of(binding);
}

}  // namespace

Introduction introduce(const MachineKey& key, Part part, const std::string& group, const std::string& name, const LinkBinding& binding) {
  return {name, text_of(key.public_key()), text_of(key.sign(bytes_of(statement(part, group, name, binding))))};
}

std::optional<PublicKey> proved_key(const Introduction& introduction, Part part, const std::string& group, const LinkBinding& binding) {
  PublicKey key;
  Signature signature;
  // A link without a binding was not authenticated, and what was signed for it would be true of all such links.
  if (introduction.public_key.size() != key.size() || introduction.signature.size() != signature.size() || binding == LinkBinding{})
    return std::nullopt;
  std::copy_n(bytes_of(introduction.public_key).begin(), key.size(), key.begin());
  std::copy_n(bytes_of(introduction.signature).begin(), signature.size(), signature.begin());
  if (!is_signed(key, bytes_of(statement(part, group, introduction.name, binding)), signature)) return std::nullopt;
  return key;
}

}  // namespace ringlet::machines
