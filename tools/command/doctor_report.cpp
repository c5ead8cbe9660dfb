#include "tools/command/doctor_report.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tools/command/table.hpp"

namespace ringlet::command {

namespace {

using namespace doctor;
using Json = nlohmann::ordered_json;

std::string_view name_of(Reach reach) {
  switch (reach) {
    case Reach::good:
      return "good";
    case Reach::refused:
      return "refused";
    case Reach::silent:
      return "no answer";
    case Reach::unreachable:
      return "unreachable";
    case Reach::token_differs:
      return "token differs";
    case Reach::not_trusted:
      return "not trusted";
    case Reach::incompatible:
      return "incompatible";
    case Reach::stalled:
      return "large messages lost";
    default:
      return "broken";
  }
}

double milliseconds(Duration duration) { return static_cast<double>(duration.nanoseconds) / 1e6; }

std::string quality_text(const std::optional<Duration>& round_trip, double bytes_per_second) {
  std::string text = round_trip ? fmt::format("{:.2f} ms", milliseconds(*round_trip)) : "-";
  if (bytes_per_second > 0) text += fmt::format(", {:.0f} MB/s", bytes_per_second / 1e6);
  return text;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string join(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

/// Appends rows as aligned columns, if there are any below the heading.
void append_table(std::string& out, const std::vector<Cells>& rows) {
  if (rows.size() == 1) return;
  for (const std::string& line : aligned(rows)) out += "  " + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  out += "\n";
}

void append_interfaces(std::string& out, const Facts& facts) {
  std::vector<Cells> rows{{"INTERFACE", "ADDRESSES", "MTU", "NOTES"}};
  for (const InterfaceFacts& one : facts.interfaces) {
    const bool is_looked_at = is_used(facts, one);
    if (!is_looked_at && !one.leads_inside) continue;
    std::vector<std::string> notes;
    if (!is_looked_at) notes.emplace_back("of virtual machines or containers: not used");
    if (!one.multicast && !one.loopback) notes.emplace_back("no multicast");
    rows.push_back({one.name, or_dash(join(one.addresses)), one.mtu == 0 ? "-" : std::to_string(one.mtu), join(notes)});
  }
  append_table(out, rows);
}

void append_machines(std::string& out, const Facts& facts) {
  std::vector<Cells> rows{{"MACHINE", "GROUP", "VERSION", "HEARD BY", "ADDRESS", "BY", "WAY"}};
  std::map<std::string, int> count;
  for (const MachineFacts& machine : facts.machines) ++count[machine.name];
  for (const MachineFacts& machine : facts.machines) {
    const std::string name =
        count[machine.name] == 1 ? machine.name : fmt::format("{} ({:.4})", machine.name, fmt::format("{:016x}", machine.instance));
    const char* heard = machine.by_multicast ? "multicast" : "its name";
    if (machine.paths.empty()) rows.push_back({name, machine.group, machine.version, heard, "-", "-", "not tried"});
    for (const PathFacts& path : machine.paths)
      rows.push_back({name, machine.group, machine.version, heard, to_string(path.to), or_dash(path.interface),
                      path.reach == Reach::good ? quality_text(path.round_trip, path.bytes_per_second) : std::string(name_of(path.reach))});
  }
  append_table(out, rows);
}

void append_matrix(std::string& out, const Facts& facts) {
  std::vector<Cells> rows{{"FROM", "TO", "WAY"}};
  for (const MatrixRow& row : facts.matrix)
    for (const MatrixRow::Cell& cell : row.cells)
      rows.push_back({row.from, cell.to, cell.failure.empty() ? quality_text(cell.round_trip, cell.bytes_per_second) : cell.failure});
  append_table(out, rows);
}

const char* colour_of(Severity severity) {
  if (severity == Severity::error) return "1;31";
  return severity == Severity::warning ? "1;33" : "1";
}

void append(Json& json, const doctor::RankPort& tried) {
  if (tried.port != 0) json["rank_port"] = {{"port", tried.port}, {"failure", tried.failure}};
}

Json to_json(const PathFacts& path) {
  Json json{{"address", to_string(path.to)}, {"interface", path.interface}, {"reach", name_of(path.reach)}, {"text", path.text}};
  if (path.round_trip) json["round_trip_ms"] = milliseconds(*path.round_trip);
  if (path.bytes_per_second > 0) json["bytes_per_second"] = path.bytes_per_second;
  append(json, path.rank_port);
  return json;
}

Json to_json(const MatrixRow::Cell& cell) {
  Json json{{"to", cell.to}};
  if (cell.round_trip) json["round_trip_ms"] = milliseconds(*cell.round_trip);
  if (cell.bytes_per_second > 0) json["bytes_per_second"] = cell.bytes_per_second;
  if (!cell.failure.empty()) json["failure"] = cell.failure;
  append(json, cell.rank_port);
  return json;
}

Json to_json(const Finding& finding) {
  return {{"severity", doctor::name_of(finding.severity)},
          {"code", finding.code},
          {"subject", finding.subject},
          {"text", finding.text},
          {"next", finding.next}};
}

Json to_json(const InterfaceFacts& one) {
  return {{"name", one.name},         {"addresses", one.addresses}, {"mtu", one.mtu},
          {"loopback", one.loopback}, {"multicast", one.multicast}, {"leads_inside", one.leads_inside}};
}

Json to_json(const PeerFacts& peer) {
  Json json{{"name", peer.name}, {"answered", peer.answered}};
  if (peer.knock) json["knock"] = to_json(*peer.knock);
  return json;
}

Json to_json(const MachineFacts& machine);
Json to_json(const MatrixRow& row);

template <class T>
Json list_of(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& one : all) list.push_back(to_json(one));
  return list;
}

Json to_json(const MachineFacts& machine) {
  Json json{{"name", machine.name},           {"instance", fmt::format("{:016x}", machine.instance)},
            {"group", machine.group},         {"version", machine.version},
            {"port", machine.port},           {"heard_by", machine.by_multicast ? "multicast" : "name"},
            {"paths", list_of(machine.paths)}};
  if (machine.clock_ahead) json["clock_ahead_ms"] = machine.clock_ahead->whole_milliseconds();
  return json;
}

Json to_json(const MatrixRow& row) { return {{"from", row.from}, {"to", list_of(row.cells)}}; }

}  // namespace

std::string doctor_report(const Facts& facts, const std::vector<Finding>& findings, bool colours) {
  std::string out =
      fmt::format("Ringlet {} on {}{}, {}\n\n", facts.version, facts.name,
                  facts.group.empty() ? "" : fmt::format(", group {}", facts.group), facts.has_token ? "with a token" : "without a token");
  append_interfaces(out, facts);
  append_machines(out, facts);
  append_matrix(out, facts);
  for (const Finding& finding : findings) {
    const std::string head{doctor::name_of(finding.severity)};
    out += fmt::format("{}: {}\n", colours ? highlighted(head, colour_of(finding.severity)) : head, finding.text);
    out += fmt::format("  next: {}\n", finding.next);
  }
  if (findings.empty()) out += "Nothing is wrong.\n";
  return out;
}

Json doctor_json(const Facts& facts, const std::vector<Finding>& findings) {
  return {{"name", facts.name},
          {"version", facts.version},
          {"group", facts.group},
          {"token", facts.has_token},
          {"heard_itself", facts.heard_itself},
          {"findings", list_of(findings)},
          {"interfaces", list_of(facts.interfaces)},
          {"machines", list_of(facts.machines)},
          {"peers", list_of(facts.peers)},
          {"matrix", list_of(facts.matrix)}};
}

}  // namespace ringlet::command
