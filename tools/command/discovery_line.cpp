#include "tools/command/discovery_line.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace ringlet::command {

namespace {

constexpr std::size_t kMaxPeers = 64;

/// Returns the names of all network interfaces, also of those that are down.
std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  struct if_nameindex* const all = ::if_nameindex();
  if (all == nullptr) return names;
  for (const struct if_nameindex* one = all; one->if_name != nullptr; ++one) names.emplace_back(one->if_name);
  ::if_freenameindex(all);
  return names;
}

std::optional<std::string> find_unknown_interface(const std::vector<std::string>& given) {
  if (given.empty()) return std::nullopt;
  const std::vector<std::string> names = interface_names();
  for (const std::string& name : given)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return fmt::format("--interface '{}': this machine has no interface of that name; it has {}", name, fmt::join(names, ", "));
  return std::nullopt;
}

}  // namespace

void declare_discovery_options(CLI::App& app, DiscoveryLine& line) {
  app.add_option("--peer", line.peers, "A machine to ask by name, HOST[:PORT], where multicast does not reach it; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--port", line.port, "The UDP port, the same on all machines")->capture_default_str();
  app.add_option("--interface", line.interfaces, "A network interface to use instead of all suitable ones; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("NAME");
  app.add_flag("--json", line.json, "Print JSON");
}

Result<Address> parse_peer(const std::string& text, std::uint16_t port) {
  if (auto whole = parse_address(text); whole.ok() && whole.value().port != 0) return whole;
  // The text may lack a port, and an IPv6 address without a port may lack brackets.
  for (const std::string& form : {fmt::format("{}:{}", text, port), fmt::format("[{}]:{}", text, port)})
    if (auto whole = parse_address(form); whole.ok()) return whole;
  return Status{Errc::invalid_argument, fmt::format("--peer {}: write HOST or HOST:PORT, an IPv6 address with a port in brackets", text)};
}

std::optional<std::string> convert_discovery_line(const DiscoveryLine& line, UvDatagramsOptions& options) {
  if (line.port == 0) return "--port 0: give the port that the other machines use, from 1 to 65535";
  if (line.peers.size() > kMaxPeers) return fmt::format("{} peers: there may be at most {}", line.peers.size(), kMaxPeers);
  if (auto mistake = find_unknown_interface(line.interfaces)) return mistake;
  options.port = line.port;
  options.interfaces = line.interfaces;
  for (const std::string& text : line.peers) {
    auto peer = parse_peer(text, line.port);
    if (!peer.ok()) return peer.status().text();
    options.peers.push_back(std::move(peer).value());
  }
  return std::nullopt;
}

void ask_this_machine(UvDatagramsOptions& options) {
  for (const char* host : {"127.0.0.1", "::1"}) options.peers.push_back({host, options.port});
}

}  // namespace ringlet::command
