#include "tools/launch/hosts/host_list.hpp"

#include <fmt/format.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "core/base/address.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/launch_options.hpp"
#include "transport/uv/interface_list.hpp"

namespace ringlet::launch {

namespace {

constexpr int kUsage = 2;

bool is_own_address(const std::string& name) {
  for (const uv::ListedInterface& interface : uv::list_interfaces())
    for (const IpAddress& address : interface.addresses)
      if (to_string(address) == name) return true;
  return false;
}

Host parse_entry(std::string_view entry, std::string_view list) {
  Host host;
  const std::string where = fmt::format("--hosts '{}'", entry.empty() ? list : entry);
  std::string_view name = entry;
  std::string_view slots;
  const std::size_t open = entry.find('['), close = entry.find(']');
  const std::size_t colon = entry.rfind(':');
  const bool bracketed = open != std::string_view::npos && close != std::string_view::npos && open < close;
  // An IPv6 address without brackets has several colons and no number of ranks.
  const bool numbered = colon != std::string_view::npos && (bracketed ? colon == close + 1 : entry.find(':') == colon);
  if (numbered) {
    name = entry.substr(0, colon);
    slots = entry.substr(colon + 1);
    int number = 0;
    const auto [stop, error] = std::from_chars(slots.data(), slots.data() + slots.size(), number);
    if (error != std::errc() || stop != slots.data() + slots.size())
      throw LaunchError(kUsage,
                        fmt::format("{}: '{}' is not a number of ranks; write HOST:2, and a port in --ssh \"ssh -p 2222\"", where, slots));
    host.slots = number;
  }
  for (const char letter : name)
    if (!bracketed || (letter != '[' && letter != ']')) host.ssh += letter;
  check_host(host, where);
  return host;
}

}  // namespace

void check_host(const Host& host, const std::string& where) {
  const auto refuse = [&](const std::string& what) { throw LaunchError(kUsage, where + ": " + what); };
  if (host.name().empty()) refuse("a host has no name; give one that ssh knows, such as alpha or user@10.0.0.7");
  // ssh would take it for an option.
  if (host.ssh.front() == '-') refuse(fmt::format("'{}' is no host; a name does not begin with '-'", host.ssh));
  if (std::any_of(host.ssh.begin(), host.ssh.end(), [](unsigned char letter) { return std::isspace(letter) || std::iscntrl(letter); }))
    refuse(fmt::format("'{}' is no host; a name has no white space", host.ssh));
  if (host.slots && (*host.slots < 1 || *host.slots > kMaxRanks))
    refuse(fmt::format("{} ranks on one host; give a number from 1 to {}", *host.slots, kMaxRanks));
}

std::vector<Host> parse_host_list(const std::string_view list) {
  std::string_view text = list;
  std::vector<Host> hosts;
  for (;;) {
    const std::size_t comma = text.find(',');
    hosts.push_back(parse_entry(text.substr(0, comma), list));
    if (hosts.size() > kMaxHosts) throw LaunchError(kUsage, fmt::format("--hosts names more than {} hosts", kMaxHosts));
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

std::string own_host_name() {
  std::array<char, UV_MAXHOSTNAMESIZE> text{};
  std::size_t length = text.size();
  return uv_os_gethostname(text.data(), &length) == 0 ? std::string(text.data(), length) : std::string();
}

bool is_this_machine(const Host& host) {
  if (host.ssh.find('@') != std::string::npos) return false;
  if (is_loopback({host.ssh, 0})) return true;
  const std::string own = own_host_name();
  return host.ssh == own || host.ssh == own.substr(0, own.find('.')) || is_own_address(host.ssh);
}

}  // namespace ringlet::launch
