#include "core/base/address.hpp"

#include <algorithm>
#include <optional>

namespace ringlet {
namespace {

// std::isdigit and its relatives depend on the locale; the syntax of an address does not.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

/// Parses a decimal number without a sign or leading zeros, at most `limit`.
std::optional<unsigned> parse_number(std::string_view text, unsigned limit) {
  if (text.empty() || text.size() > 5 || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  unsigned number = 0;
  for (const char c : text) number = number * 10 + static_cast<unsigned>(c - '0');
  return number <= limit ? std::optional(number) : std::nullopt;
}

bool is_ipv4(std::string_view text) {
  for (int part = 0; part < 4; ++part) {
    const auto dot = part < 3 ? text.find('.') : text.size();
    if (dot == std::string_view::npos || !parse_number(text.substr(0, dot), 255)) return false;
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return text.empty();
}

/// Counts the groups of one to four hex digits between colons, of which an IPv4 address at the end counts as two. Returns nullopt if `text`
/// has another form.
std::optional<int> count_groups(std::string_view text) {
  int groups = 0;
  while (!text.empty()) {
    const auto colon = text.find(':');
    const auto group = text.substr(0, colon);
    const bool last = colon == std::string_view::npos;
    if (last && is_ipv4(group)) return groups + 2;
    if (group.empty() || group.size() > 4 || !std::all_of(group.begin(), group.end(), is_hex_digit)) return std::nullopt;
    ++groups;
    if (last) break;
    text.remove_prefix(colon + 1);
    if (text.empty()) return std::nullopt;
  }
  return groups;
}

bool is_ipv6(std::string_view text) {
  if (const auto percent = text.find('%'); percent != std::string_view::npos) {
    const auto scope = text.substr(percent + 1);
    if (scope.empty() || !std::all_of(scope.begin(), scope.end(), is_name_character)) return false;
    text = text.substr(0, percent);
  }
  const auto gap = text.find("::");
  if (gap == std::string_view::npos) return count_groups(text) == 8;
  const auto before = count_groups(text.substr(0, gap));
  const auto after = count_groups(text.substr(gap + 2));
  // An IPv4 tail may only stand at the very end, so not before the gap.
  return before && after && *before + *after <= 7 && text.substr(0, gap).find('.') == std::string_view::npos;
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253 || !std::all_of(text.begin(), text.end(), is_name_character)) return false;
  const bool numeric = std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
  return !numeric || is_ipv4(text);
}

std::string quoted(std::string_view text) {
  std::string result;
  return result.append(1, '"').append(text).append(1, '"');
}

Status not_an_address(std::string_view text, std::string_view reason) {
  return {Errc::invalid_argument, quoted(text).append(" is not an address: ").append(reason)};
}

struct Halves {
  std::string_view host;
  std::string_view port;
};

Result<Halves> split_address(std::string_view text) {
  if (text.empty()) return not_an_address(text, "it is empty; write host:port");
  if (text.front() == '[') {
    const auto bracket = text.find(']');
    if (bracket == std::string_view::npos) return not_an_address(text, "the bracket is not closed; write [IPv6 address]:port");
    if (bracket + 1 == text.size()) return not_an_address(text, "it has no port; write [IPv6 address]:port");
    if (text[bracket + 1] != ':') return not_an_address(text, "a colon and the port must follow the bracket");
    const auto host = text.substr(1, bracket - 1);
    if (!is_ipv6(host)) return not_an_address(text, "there is no IPv6 address between the brackets");
    return Halves{host, text.substr(bracket + 2)};
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return not_an_address(text, "it has no port; write host:port");
  if (text.find(':', colon + 1) != std::string_view::npos)
    return not_an_address(text, "it has several colons; write an IPv6 address in brackets, as in [fe80::1%eth0]:5000");
  const auto host = text.substr(0, colon);
  if (!is_host_name(host)) return not_an_address(text, quoted(host).append(" is neither a host name nor an IPv4 address"));
  return Halves{host, text.substr(colon + 1)};
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const auto halves = split_address(text);
  if (!halves.ok()) return halves.status();
  const auto port = parse_number(halves.value().port, 65535);
  if (!port) return not_an_address(text, quoted(halves.value().port).append(" is not a port, a whole number from 0 to 65535"));
  return Address{std::string(halves.value().host), static_cast<std::uint16_t>(*port)};
}

std::string to_string(const Address& address) {
  const bool bracketed = address.host.find(':') != std::string::npos;
  std::string text;
  text.append(bracketed ? "[" : "").append(address.host).append(bracketed ? "]:" : ":");
  return text.append(std::to_string(address.port));
}

bool is_loopback(const Address& address) {
  const std::string_view host = address.host;
  return host == "localhost" || host == "::1" || (host.substr(0, 4) == "127." && is_ipv4(host));
}

std::string host_of(const std::string& peer_name) {
  const auto address = parse_address(peer_name);
  return address.ok() ? address.value().host : peer_name;
}

}  // namespace ringlet
