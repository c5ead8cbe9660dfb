#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringlet {

/// TCP ports that a firewall was told of. 0 to 0: any that is free.
struct PortRange {
  std::uint16_t first = 0, last = 0;

  constexpr bool any() const { return first == 0; }
  constexpr int count() const { return any() ? 0 : last - first + 1; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

/// Reads "47175-47238", "47175" or "any"; nothing if the text is none of these.
std::optional<PortRange> parse_port_range(std::string_view text);
/// The inverse of parse_port_range.
std::string to_string(const PortRange& ports);

}  // namespace ringlet
