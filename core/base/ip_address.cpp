#include "core/base/ip_address.hpp"

#include <algorithm>

namespace ringlet {
namespace {

constexpr std::size_t kGroups = 8;

std::string v4_text(ConstBytes bytes) {
  std::string text;
  for (const std::byte part : bytes) text.append(text.empty() ? "" : ".").append(std::to_string(std::to_integer<unsigned>(part)));
  return text;
}

std::string hex_text(unsigned value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (; value > 0 || text.empty(); value >>= 4) text.insert(text.begin(), kDigits[value & 15]);
  return text;
}

struct Run {
  std::size_t begin = kGroups;
  std::size_t length = 1;  // a single zero group is not abbreviated
};

Run longest_zeros(const std::array<unsigned, kGroups>& groups) {
  Run best;
  for (std::size_t begin = 0; begin < kGroups; ++begin) {
    std::size_t length = 0;
    while (begin + length < kGroups && groups[begin + length] == 0) ++length;
    if (length > best.length) best = {begin, length};
  }
  return best;
}

std::string v6_text(ConstBytes bytes) {
  std::array<unsigned, kGroups> groups{};
  for (std::size_t i = 0; i < bytes.size(); ++i) groups[i / 2] = groups[i / 2] << 8 | std::to_integer<unsigned>(bytes[i]);
  const Run gap = longest_zeros(groups);
  std::string text;
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == gap.begin) {
      text += "::";
      i += gap.length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    text += hex_text(groups[i]);
  }
  return text;
}

}  // namespace

std::optional<IpAddress> IpAddress::from_bytes(ConstBytes bytes) {
  if (bytes.size() != 4 && bytes.size() != 16) return std::nullopt;
  IpAddress address;
  address.family_ = bytes.size() == 4 ? Family::v4 : Family::v6;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

bool IpAddress::is_unicast() const noexcept {
  const auto own = bytes();
  const auto all = [&](std::byte value) { return std::all_of(own.begin(), own.end(), [value](std::byte byte) { return byte == value; }); };
  if (all(std::byte{0})) return false;
  if (family_ == Family::v6) return own[0] != std::byte{0xff};
  return !all(std::byte{0xff}) && (own[0] & std::byte{0xf0}) != std::byte{0xe0};
}

bool IpAddress::is_loopback() const noexcept {
  const auto own = bytes();
  if (family_ == Family::v4) return own[0] == std::byte{127};
  return own.back() == std::byte{1} && std::all_of(own.begin(), own.end() - 1, [](std::byte byte) { return byte == std::byte{0}; });
}

bool IpAddress::is_link_local() const noexcept {
  const auto own = bytes();
  if (family_ == Family::v4) return own[0] == std::byte{169} && own[1] == std::byte{254};
  return own[0] == std::byte{0xfe} && (own[1] & std::byte{0xc0}) == std::byte{0x80};
}

std::string to_string(const IpAddress& address) {
  return address.family() == IpAddress::Family::v4 ? v4_text(address.bytes()) : v6_text(address.bytes());
}

}  // namespace ringlet
