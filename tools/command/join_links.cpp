#include "tools/command/join_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace ringlet::command {

namespace {

bool starts_with_one_of(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.substr(0, beginning.size()) == beginning; });
}

bool is_private(std::string_view address) {
  if (starts_with_one_of(address, {"10.", "192.168."})) return true;
  for (int second = 16; second < 32; ++second)
    if (starts_with_one_of(address, {fmt::format("172.{}.", second)})) return true;
  return false;
}

/// Returns a number to sort by. A lower one means that a phone on the same network more likely reaches the address.
int remoteness(const std::string& interface, const std::string& address) {
  const bool is_virtual = uv::leads_inside(interface) || starts_with_one_of(interface, {"utun", "tun", "tap"});
  return (is_virtual ? 2 : 0) + (is_private(address) ? 0 : 1);
}

bool is_v6(std::string_view address) { return address.find(':') != std::string_view::npos; }

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' || c == '~';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace

std::vector<std::string> reachable_hosts(const std::string& host, const std::vector<uv::ListedInterface>& interfaces) {
  if (host != "0.0.0.0" && host != "::") return {host};
  const auto family = host == "::" ? IpAddress::Family::v6 : IpAddress::Family::v4;
  std::multimap<int, std::string> by_remoteness;
  for (const uv::ListedInterface& interface : interfaces)
    for (const IpAddress& address : interface.addresses)
      // A link-local IPv6 address needs a scope, which browsers do not accept.
      if (!interface.loopback && address.family() == family && !address.is_link_local())
        by_remoteness.emplace(remoteness(interface.name, to_string(address)), to_string(address));
  std::vector<std::string> hosts;
  for (const auto& [remoteness, address] : by_remoteness) hosts.push_back(address);
  if (hosts.empty()) hosts.emplace_back(host == "::" ? "::1" : "127.0.0.1");
  return hosts;
}

std::string join_link(const std::string& host, int port, const std::string& token, const std::string& encrypt) {
  return fmt::format("http://{}{}{}:{}/#token={}{}{}", is_v6(host) ? "[" : "", host, is_v6(host) ? "]" : "", port, percent_encoded(token),
                     encrypt.empty() ? "" : "&encrypt=", encrypt);
}

}  // namespace ringlet::command
