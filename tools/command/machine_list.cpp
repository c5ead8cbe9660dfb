#include "tools/command/machine_list.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tools/command/table.hpp"

namespace ringlet::command {

namespace {

using discovery::Change;
using discovery::Machine;
using Json = nlohmann::ordered_json;

std::string dash_if_empty(std::string text) { return text.empty() ? "-" : text; }

std::string address_text(const DatagramSource& source) { return to_string(source.address); }

Cells machine_row(const Machine& machine) {
  const auto& profile = machine.profile;
  const discovery::Device device = profile.devices.empty() ? discovery::Device{} : profile.devices.front();
  return {dash_if_empty(profile.name),
          dash_if_empty(profile.group) + (profile.pairing_port == 0 ? "" : " (pairs)"),
          std::to_string(profile.epoch),
          address_text(best_source(machine)),
          device.cores == 0 ? "-" : std::to_string(device.cores),
          device.memory_bytes == 0 ? "-" : bytes_text(device.memory_bytes),
          device.free_memory_bytes == 0 ? "-" : bytes_text(device.free_memory_bytes),
          dash_if_empty(device.simd),
          dash_if_empty(profile.version)};
}

std::string_view name_of(Change change) {
  if (change == Change::appeared) return "appeared";
  return change == Change::changed ? "changed" : "left";
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::vector<std::string> machine_table(const Machines& machines, std::size_t columns, bool colours) {
  std::vector<Cells> rows{{"NAME", "GROUP", "EPOCH", "ADDRESS", "CORES", "MEMORY", "FREE", "SIMD", "VERSION"}};
  for (const Machine* machine : machines) rows.push_back(machine_row(*machine));
  std::vector<std::string> lines = aligned(rows);
  if (columns > 0)
    for (std::string& line : lines) line = cut(line, columns);
  if (colours) lines.front() = highlighted(lines.front(), "1");
  return lines;
}

std::string event_line(Change change, const Machine& machine) {
  const std::string where = machine.profile.group.empty() ? "" : " in group " + machine.profile.group;
  return fmt::format("{} {}{} ({})", dash_if_empty(machine.profile.name), name_of(change), where, address_text(best_source(machine)));
}

Json to_json(const std::vector<NetworkInterface>& interfaces) {
  Json list = Json::array();
  for (const NetworkInterface& interface : interfaces) {
    Json addresses = Json::array();
    for (const IpAddress& address : interface.addresses) addresses.push_back(to_string(address));
    list.push_back({{"name", interface.name}, {"addresses", addresses}});
  }
  return list;
}

Json to_json(const Machine& machine) {
  const auto& profile = machine.profile;
  Json devices = Json::array();
  for (const discovery::Device& device : profile.devices)
    devices.push_back({{"kind", device.kind},
                       {"cores", device.cores},
                       {"memory_bytes", device.memory_bytes},
                       {"free_memory_bytes", device.free_memory_bytes},
                       {"simd", device.simd}});
  Json heard_at = Json::array();
  for (const discovery::Sighting& sighting : machine.sightings) heard_at.push_back(address_text(sighting.from));
  return {{"name", profile.name},
          {"instance", fmt::format("{:016x}", machine.instance)},
          {"version", profile.version},
          {"group", profile.group},
          {"epoch", profile.epoch},
          {"port", profile.port},
          {"pairing_port", profile.pairing_port},
          {"address", address_text(best_source(machine))},
          {"heard_at", heard_at},
          {"devices", devices},
          {"interfaces", to_json(profile.interfaces)}};
}

Json event_json(Change change, const Machine& machine) { return {{"event", name_of(change)}, {"machine", to_json(machine)}}; }

}  // namespace ringlet::command
