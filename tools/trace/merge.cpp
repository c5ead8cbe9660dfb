#include "tools/trace/merge.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "tools/trace/trace_part.hpp"

namespace ringlet::trace {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFirstExtraProcess = 1'000'000;

/// Gives each part a process number of its own.
std::int64_t process_for(std::int64_t wanted, std::set<std::int64_t>& taken) {
  std::int64_t process = wanted;
  for (std::int64_t next = kFirstExtraProcess; !taken.insert(process).second; ++next) process = next;
  return process;
}

void add_clock(Json& event, const std::optional<ClockMap>& map) {
  const auto arguments = event.find("args");
  if (text_in(event, "name") != "ringlet_trace" || arguments == event.end() || !arguments->is_object()) return;
  (*arguments)["aligned"] = map.has_value();
  if (map) (*arguments)["clock_error_ns"] = map->error_ns();
}

}  // namespace

std::string name_while_unfinished(const std::string& out) { return out + ".unfinished"; }

Merged merge_traces(const std::vector<std::string>& parts, const std::string& out) {
  Merged merged;
  merged.parts = parts.size();
  std::vector<PartClock> clocks(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    read_events(parts[i], [&](const Json& event) { take_clock(event, clocks[i]); }, may_tell_of_clock);
  const auto maps = map_clocks(clocks);

  const std::string unfinished = name_while_unfinished(out);
  std::ofstream file(unfinished);
  const auto check = [&] {
    if (file) return;
    const std::string reason = std::strerror(errno);
    file.close();
    std::filesystem::remove(unfinished);
    throw std::runtime_error(fmt::format("'{}' cannot be written: {}", unfinished, reason));
  };
  check();
  file << kBeginOfMerged << '\n';
  std::set<std::int64_t> processes;
  const char* separator = "";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!maps[i]) merged.unaligned.push_back(parts[i]);
    std::optional<std::int64_t> process;
    merged.unreadable += read_events(parts[i], [&](Json& event) {
      if (!process) process = process_for(number_in(event, "pid"), processes);
      event["pid"] = *process;
      if (const auto at = event.find("ts"); maps[i] && at != event.end() && at->is_number())
        *at = static_cast<double>(maps[i]->to_common(std::llround(at->get<double>() * 1000))) / 1000;
      merged.dropped += dropped_in(event);
      add_clock(event, maps[i]);
      file << separator << event.dump(-1, ' ', false, Json::error_handler_t::replace);
      separator = ",\n";
      ++merged.events;
    });
    check();
  }
  file << '\n' << kEndOfMerged << '\n';
  file.close();
  check();
  std::filesystem::rename(unfinished, out);
  return merged;
}

}  // namespace ringlet::trace
