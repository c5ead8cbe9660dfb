#include "tools/agent/machine_search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringlet::agent {

namespace {

// A search asks at once and after 0.3 s, and machines that are up answer at once: one that has not answered by then was not up.
constexpr Duration kSettle = Duration::milliseconds(600);

std::string host_text(const IpAddress& address, std::uint32_t scope) {
  const std::string text = to_string(address);
  return address.is_link_local() && address.family() == IpAddress::Family::v6 && scope != 0 ? fmt::format("{}%{}", text, scope) : text;
}

/// An address that means the same machine everywhere, where it has one.
std::string meeting_host(const discovery::Machine& machine) {
  const DatagramSource& best = discovery::best_source(machine);
  if (!best.address.is_loopback() && !best.address.is_link_local()) return to_string(best.address);
  for (const NetworkInterface& interface : machine.profile.interfaces)
    for (const IpAddress& address : interface.addresses)
      if (!address.is_loopback() && !address.is_link_local()) return to_string(address);
  return host_text(best.address, best.scope);
}

std::string plural(std::size_t count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

}  // namespace

std::vector<Address> addresses_of(const discovery::Machine& machine, std::uint16_t port) {
  std::vector<Address> addresses;
  const DatagramSource& best = discovery::best_source(machine);
  const auto add = [&](const DatagramSource& source) { addresses.push_back({host_text(source.address, source.scope), port}); };
  add(best);
  for (const discovery::Sighting& sighting : machine.sightings)
    if (sighting.from != best) add(sighting.from);
  return addresses;
}

std::string names_of(const std::vector<NetworkInterface>& interfaces) {
  std::string names;
  for (const NetworkInterface& interface : interfaces) names += (names.empty() ? "" : ", ") + interface.name;
  return names.empty() ? "no interface" : names;
}

MachineSearch::MachineSearch(UvLoop& loop, SearchOptions options)
    : loop_(loop),
      options_(std::move(options)),
      datagrams_(loop, options_.datagrams),
      discovery_(loop, datagrams_, {.seed = options_.seed, .profile = {}, .devices = {}, .limits = {}},
                 [this](discovery::Change, const discovery::Machine&) {
                   loop_.cancel(settle_timer_);
                   settle_timer_ = loop_.after(kSettle, [this] { look(); });
                 }) {}

MachineSearch::~MachineSearch() {
  loop_.cancel(settle_timer_);
  loop_.cancel(end_timer_);
}

Status MachineSearch::start() {
  discovery_.start();
  if (const Status status = datagrams_.status(); !status.ok()) return status;
  settle_timer_ = loop_.after(kSettle, [this] { look(); });
  end_timer_ = loop_.after(options_.wait, [this] { over_ = true; });
  return {};
}

bool MachineSearch::wants(const discovery::Machine& machine) const {
  const auto& names = options_.names;
  return machine.profile.group == options_.group && machine.profile.pairing_port == 0 &&
         (names.empty() || std::find(names.begin(), names.end(), machine.profile.name) != names.end());
}

std::vector<const discovery::Machine*> MachineSearch::suitable() const {
  return discovery_.directory().find([this](const discovery::Machine& machine) { return wants(machine) && machine.profile.port != 0; });
}

void MachineSearch::look() {
  if (!find_lack()) over_ = true;
}

std::vector<FoundMachine> MachineSearch::machines() const {
  std::vector<FoundMachine> all;
  for (const discovery::Machine* machine : suitable())
    all.push_back({machine->instance, machine->profile.name, addresses_of(*machine, machine->profile.port), meeting_host(*machine)});
  return all;
}

std::optional<std::string> MachineSearch::find_unanswered() const {
  std::string list;
  for (const IpAddress& address : discovery_.unanswered()) list += (list.empty() ? "" : ", ") + to_string(address);
  if (list.empty()) return std::nullopt;
  return fmt::format(
      "{0}, of which `ringlet up` tells, did not answer at UDP port {1}; a firewall there may hold that back (`ringlet doctor "
      "--group {2} --peer {0}` tells what to type)",
      list, options_.datagrams.port, options_.group);
}

std::optional<std::string> MachineSearch::find_lack() const {
  const auto present = suitable();
  std::string missing, idle;
  for (const std::string& name : options_.names)
    if (std::none_of(present.begin(), present.end(), [&](const auto* machine) { return machine->profile.name == name; }))
      missing += (missing.empty() ? "" : ", ") + name;
  if (missing.empty() && static_cast<int>(present.size()) >= std::max(options_.at_least, 1)) return std::nullopt;
  for (const auto& [instance, machine] : discovery_.directory().machines())
    if (wants(machine) && machine.profile.port == 0) idle += (idle.empty() ? "" : ", ") + machine.profile.name;
  std::string text = missing.empty()
                         ? fmt::format("{} of {} found in group {}", present.size(),
                                       plural(static_cast<std::size_t>(std::max(options_.at_least, 1)), "machine"), options_.group)
                         : fmt::format("{} not found in group {}", missing, options_.group);
  text +=
      fmt::format(" within {} s on {}", static_cast<double>(options_.wait.whole_milliseconds()) / 1000, names_of(datagrams_.interfaces()));
  text += datagrams_.describe_unknown();
  if (const std::string others = describe_other_groups(discovery_.directory(), options_.group); !others.empty())
    text += "; heard in other groups: " + others;
  if (!idle.empty())
    return text +
           fmt::format(
               "; {} up, but without a token, and so starts no programs: get the group's there with `ringlet pair --group {} --join`, and "
               "start `ringlet up` anew",
               idle + " is", options_.group);
  return text + fmt::format(
                    "; is `ringlet up --group {}` running there, with the token? Where the network blocks multicast, name a machine with "
                    "--peer HOST",
                    options_.group);
}

}  // namespace ringlet::agent
