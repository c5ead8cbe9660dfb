#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/bytes.hpp"

namespace ringlet {

/// An IPv4 or IPv6 address, without scope or port.
class IpAddress {
 public:
  enum class Family : std::uint8_t { v4, v6 };

  /// Makes 0.0.0.0.
  IpAddress() = default;
  /// Makes an address from 4 or 16 bytes in network order; returns nothing for another number of bytes.
  static std::optional<IpAddress> from_bytes(ConstBytes bytes);

  Family family() const noexcept { return family_; }
  /// 4 or 16 bytes in network order.
  ConstBytes bytes() const noexcept { return ConstBytes(bytes_).first(family_ == Family::v4 ? 4 : 16); }
  /// Whether the address belongs to one machine: it is neither unspecified, multicast nor IPv4's broadcast.
  bool is_unicast() const noexcept;
  bool is_loopback() const noexcept;
  /// Whether the address is in 169.254.0.0/16 or fe80::/10.
  bool is_link_local() const noexcept;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  Family family_ = Family::v4;
  std::array<std::byte, 16> bytes_{};
};

/// The text form that RFC 5952 asks for, such as "192.168.1.7" or "fe80::1"; but addresses that embed an IPv4 address stay in hex.
std::string to_string(const IpAddress& address);

}  // namespace ringlet
