#include "core/base/port_range.hpp"

#include <charconv>

namespace ringlet {

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0 ? std::optional(port) : std::nullopt;
}

}  // namespace

std::optional<PortRange> parse_port_range(std::string_view text) {
  if (text == "any") return PortRange{};
  const std::size_t dash = text.find('-');
  const auto first = parse_port(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_port(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return PortRange{*first, *last};
}

std::string to_string(const PortRange& ports) {
  if (ports.any()) return "any";
  const std::string first = std::to_string(ports.first);
  return ports.first == ports.last ? first : first + "-" + std::to_string(ports.last);
}

}  // namespace ringlet
