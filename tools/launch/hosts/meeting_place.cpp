#include "tools/launch/hosts/meeting_place.hpp"

#include <algorithm>

namespace ringlet::launch {

namespace {

/// Such an address means nothing on other machines, since it needs an interface beside it.
bool is_link_local(const std::string& address) { return address.find('%') != std::string::npos || address.rfind("fe80:", 0) == 0; }

/// Where ssh's server was reached, or, if what was started in ssh's place does not say, the name that it was given.
std::string reached_at(const ReachedHost& entry) { return entry.offer.own_address.empty() ? entry.host.name() : entry.offer.own_address; }

bool leads_here_from_elsewhere(const std::string& address) {
  return !address.empty() && !is_loopback({address, 0}) && !is_link_local(address);
}

}  // namespace

std::string choose_meeting_host(std::span<const ReachedHost> hosts) {
  const Host& first = hosts.front().host;
  if (!first.ips.empty()) return first.ips.front();
  // A deputy on this machine was not started by ssh, though the user may have come here by it.
  const auto is_here = [](const ReachedHost& entry) { return is_this_machine(entry.host); };
  const bool all_here = std::all_of(hosts.begin(), hosts.end(),
                                    [&](const ReachedHost& entry) { return is_here(entry) || is_loopback({reached_at(entry), 0}); });
  if (all_here) return "127.0.0.1";
  if (!is_here(hosts.front())) {
    const std::string seen = reached_at(hosts.front());
    return leads_here_from_elsewhere(seen) ? seen : first.name();
  }
  for (const ReachedHost& entry : hosts)
    if (!is_here(entry) && leads_here_from_elsewhere(entry.offer.launcher_address)) return entry.offer.launcher_address;
  return is_loopback({first.name(), 0}) ? own_host_name() : first.name();
}

job::BindPort listen_for(const Address& meeting) {
  const bool six = meeting.host.find(':') != std::string::npos;
  if (is_loopback(meeting)) return {six ? "::1" : "127.0.0.1", meeting.port};
  return {six ? "::" : "0.0.0.0", meeting.port};
}

}  // namespace ringlet::launch
