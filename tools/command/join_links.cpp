#include "tools/command/join_links.hpp"

#include <fmt/format.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "transport/uv/interface_list.hpp"

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
int remoteness(const InterfaceAddress& entry) {
  const bool is_virtual = uv::leads_inside(entry.interface) || starts_with_one_of(entry.interface, {"utun", "tun", "tap"});
  return (is_virtual ? 2 : 0) + (is_private(entry.address) ? 0 : 1);
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

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> result;
  uv_interface_address_t* list = nullptr;
  int count = 0;
  if (uv_interface_addresses(&list, &count) != 0) return result;
  for (int index = 0; index < count; ++index) {
    std::array<char, 64> text{};
    const auto& entry = list[index];
    const bool v4 = entry.address.address4.sin_family == AF_INET;
    const int error = v4 ? uv_ip4_name(&entry.address.address4, text.data(), text.size())
                         : uv_ip6_name(&entry.address.address6, text.data(), text.size());
    if (error == 0) result.push_back({entry.name, text.data(), entry.is_internal != 0});
  }
  uv_free_interface_addresses(list, count);
  return result;
}

std::vector<std::string> reachable_hosts(const std::string& host, const std::vector<InterfaceAddress>& addresses) {
  if (host != "0.0.0.0" && host != "::") return {host};
  const bool v6 = host == "::";
  std::vector<InterfaceAddress> usable;
  for (const InterfaceAddress& entry : addresses)
    // A link-local IPv6 address needs a scope, which browsers do not accept.
    if (!entry.internal && is_v6(entry.address) == v6 && !starts_with_one_of(entry.address, {"fe80:", "169.254."})) usable.push_back(entry);
  std::stable_sort(usable.begin(), usable.end(), [](const auto& one, const auto& other) { return remoteness(one) < remoteness(other); });
  std::vector<std::string> hosts;
  for (const InterfaceAddress& entry : usable) hosts.push_back(entry.address);
  if (hosts.empty()) hosts.emplace_back(v6 ? "::1" : "127.0.0.1");
  return hosts;
}

std::string join_link(const std::string& host, int port, const std::string& token, const std::string& encrypt) {
  return fmt::format("http://{}{}{}:{}/#token={}{}{}", is_v6(host) ? "[" : "", host, is_v6(host) ? "]" : "", port, percent_encoded(token),
                     encrypt.empty() ? "" : "&encrypt=", encrypt);
}

}  // namespace ringlet::command
