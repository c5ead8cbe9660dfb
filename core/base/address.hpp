#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace ringlet {

/// The address at which a rank listens: a host name or a numeric IPv4 or IPv6 address (without brackets), and a TCP port.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

/// Parses "10.0.0.7:5000", "host:5000" or "[fe80::1%eth0]:5000". Port 0 (the system chooses one) is allowed. Anything else is an
/// `invalid_argument` that quotes the text.
Result<Address> parse_address(std::string_view text);

/// The inverse of parse_address.
std::string to_string(const Address& address);
/// The host in the name that a link has for its peer; the name itself where it is no address.
std::string host_of(const std::string& peer_name);

/// Whether the host is 127.0.0.0/8, ::1 or "localhost".
bool is_loopback(const Address& address);

}  // namespace ringlet
