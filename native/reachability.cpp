#include "native/reachability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/rendezvous/endpoints.hpp"
#include "transport/uv/interface_traits.hpp"

namespace ringlet::native {

namespace {

using uv::ListedInterface;

std::string names_of(const std::vector<ListedInterface>& interfaces) {
  std::string names;
  for (const auto& one : interfaces) names += (names.empty() ? "" : ", ") + one.name;
  return names.empty() ? "none that is up" : names;
}

/// The interfaces over which others reach this machine.
std::vector<ListedInterface> usable(const std::optional<Setting>& setting, const std::vector<ListedInterface>& all) {
  const std::vector<std::string> wanted = setting ? split_list(setting->value) : std::vector<std::string>{};
  for (const std::string& name : wanted)
    if (!name.starts_with('!') && std::none_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; }))
      refuse(fmt::format("{} is '{}', but there is no interface '{}'; this machine has {}", setting->name, setting->value, name,
                         names_of(all)));
  auto chosen = uv::choose_interfaces(all, wanted);
  std::erase_if(chosen, [](const ListedInterface& one) { return one.loopback; });
  if (setting && chosen.empty())
    refuse(fmt::format("{} is '{}', which leaves no interface over which others could reach this machine; it has {}", setting->name,
                       setting->value, names_of(all)));
  return chosen;
}

/// All IPv4 addresses of an interface, and the first IPv6 address that others can dial. A link-local address has no meaning on another
/// machine.
std::vector<wire::Endpoint> endpoints_of(const ListedInterface& interface) {
  const uv::InterfaceTraits traits = uv::traits_of(interface.name);
  std::vector<wire::Endpoint> endpoints;
  bool has_v6 = false;
  for (const IpAddress& address : interface.addresses) {
    const bool v6 = address.family() == IpAddress::Family::v6;
    if (v6 && (has_v6 || address.is_link_local())) continue;
    has_v6 = has_v6 || v6;
    endpoints.push_back({to_string(address), 0, interface.name, traits.kind, traits.speed_mbps});
  }
  return endpoints;
}

std::vector<wire::Endpoint> advertised(const Setting& setting) {
  std::vector<wire::Endpoint> endpoints;
  for (const std::string& entry : split_list(setting.value)) {
    const Address address = parse_host(setting, entry);
    endpoints.push_back({address.host, address.port});
  }
  if (endpoints.empty() || endpoints.size() > wire::kMaxEndpoints)
    refuse(fmt::format("{} is '{}'; it must be a list of 1 to {} addresses, such as 203.0.113.7:5000", setting.name, setting.value,
                       wire::kMaxEndpoints));
  return endpoints;
}

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

/// A process that listens on the loopback alone may meet a coordinator at another address of their machine, at which nobody reaches it.
void offer_only(const std::vector<std::string>& hosts, MeetingOptions& meeting) {
  const auto is_heard = [&](const wire::Endpoint& endpoint) {
    return std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return is_heard_at(endpoint.host, host); });
  };
  if (meeting.endpoints.empty()) return;
  std::erase_if(meeting.endpoints, std::not_fn(is_heard));
  if (!meeting.endpoints.empty()) return;
  for (const std::string& host : hosts) meeting.endpoints.push_back({host, 0});
  meeting.only_endpoints = true;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (comma > 0) entries.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return entries;
}

Address parse_host(const Setting& setting, std::string_view text) {
  const std::string host(text);
  for (const std::string& form : {host, host + ":0", "[" + host + "]:0"})
    if (auto address = parse_address(form); address.ok()) return std::move(address).value();
  refuse(fmt::format("{} is '{}', but '{}' is not an address; write host or host:port, an IPv6 address with a port as [v6]:port",
                     setting.name, setting.value, host));
}

void make_reachable(const ReachSettings& settings, const std::vector<ListedInterface>& all, int rank, MeetingOptions& meeting) {
  const Address& coordinator = *meeting.coordinator;
  if (settings.listen) meeting.listen_at = parse_host(*settings.listen, settings.listen->value);
  const auto chosen = usable(settings.interfaces, all);
  std::vector<wire::Endpoint> endpoints;
  if (!is_loopback(coordinator))
    for (const auto& interface : chosen)
      for (auto& endpoint : endpoints_of(interface)) endpoints.push_back(std::move(endpoint));
  if (settings.listen) {
    std::erase_if(endpoints, [&](const auto& endpoint) { return !is_heard_at(endpoint.host, meeting.listen_at->host); });
  } else if (!endpoints.empty() && (rank == 0 || settings.interfaces)) {
    // Rank 0 listens at the coordinator's address in any case, so a socket for all addresses could not have the same port.
    for (const auto& endpoint : endpoints)
      if (endpoint.host != coordinator.host) meeting.also_at.push_back(endpoint.host);
    if (rank != 0) meeting.listen_at = Address{endpoints.front().host, 0};
  } else if (!endpoints.empty()) {
    meeting.also_at = {is_v6(coordinator.host) ? "0.0.0.0" : "::"};
  }
  meeting.interfaces = endpoints;
  meeting.only_these_interfaces = settings.interfaces.has_value();
  meeting.endpoints = settings.advertise ? advertised(*settings.advertise) : std::move(endpoints);
  meeting.only_endpoints = settings.advertise || settings.interfaces;
}

std::vector<std::string> listening_hosts(const MeetingOptions& meeting, int rank) {
  std::vector<std::string> hosts;
  if (!meeting.coordinator) {
    for (const Address& address : meeting.roster[static_cast<std::size_t>(rank)]) hosts.push_back(address.host);
  } else if (meeting.listen_at) {
    hosts = {meeting.listen_at->host};
  } else if (is_loopback(*meeting.coordinator)) {
    hosts = {is_v6(meeting.coordinator->host) ? "::1" : "127.0.0.1"};
  } else if (meeting.only_these_interfaces) {
    for (const auto& endpoint : meeting.interfaces) hosts.push_back(endpoint.host);
  } else {
    hosts = {"0.0.0.0", "::"};
    if (is_v6(meeting.coordinator->host)) std::swap(hosts.front(), hosts.back());
  }
  if (meeting.listen_at && meeting.only_these_interfaces) hosts.insert(hosts.end(), meeting.also_at.begin(), meeting.also_at.end());
  return hosts;
}

void meet_at(const Address& coordinator, const ReachSettings& settings, const std::vector<ListedInterface>& all,
             const std::vector<std::string>& hosts, int rank, MeetingOptions& meeting) {
  meeting.roster.clear();
  meeting.coordinator = coordinator;
  make_reachable(settings, all, rank, meeting);
  if (!settings.advertise) offer_only(hosts, meeting);
  meeting.listen_at = Address{hosts.front(), 0};
  meeting.also_at.assign(hosts.begin() + 1, hosts.end());
  // A port that was set belongs to the first world.
  for (wire::Endpoint& endpoint : meeting.endpoints) endpoint.port = 0;
}

}  // namespace ringlet::native
