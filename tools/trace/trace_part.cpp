#include "tools/trace/trace_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace ringlet::trace {

namespace {

using Json = nlohmann::ordered_json;

bool take_number(std::string_view& text) {
  const auto digits =
      static_cast<std::size_t>(std::find_if(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) == 0; }) - text.begin());
  text.remove_prefix(digits);
  return digits > 0;
}

/// "3", "3.epoch2" or "3.start1".
bool is_infix(std::string_view text) {
  if (!take_number(text)) return false;
  if (text.empty()) return true;
  for (const std::string_view more : {".epoch", ".start"}) {
    if (!text.starts_with(more)) continue;
    text.remove_prefix(more.size());
    return take_number(text) && text.empty();
  }
  return false;
}

}  // namespace

std::string text_in(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t number_in(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::uint64_t dropped_in(const Json& event) {
  const auto arguments = event.find("args");
  if (text_in(event, "name") != "ringlet_trace_end" || arguments == event.end()) return 0;
  std::uint64_t dropped = 0;
  for (const char* by : {"dropped_by_threads", "dropped_by_file"}) dropped += static_cast<std::uint64_t>(number_in(*arguments, by));
  return dropped;
}

bool is_merged(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  return std::getline(stream, line) && line == kBeginOfMerged;
}

std::vector<std::string> find_parts(const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path path(file);
  const std::string extension = path.extension().string(), begin = path.stem().string() + ".";
  std::vector<std::string> found;
  std::error_code failure;
  const fs::path folder = path.parent_path();
  fs::directory_iterator entries(folder.empty() ? fs::path(".") : folder, failure);
  if (failure) throw std::runtime_error(fmt::format("the folder of '{}' cannot be read: {}", file, failure.message()));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(extension) || name.size() <= begin.size() + extension.size()) continue;
    if (is_infix(std::string_view(name).substr(begin.size(), name.size() - begin.size() - extension.size())))
      found.push_back((folder / name).string());
  }
  // Rank 0 first, also of more than ten.
  std::sort(found.begin(), found.end(),
            [](const std::string& one, const std::string& two) { return one.size() != two.size() ? one.size() < two.size() : one < two; });
  return found;
}

void read_lines(const std::string& path, const std::function<bool(std::string_view line)>& take) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, std::strerror(errno)));
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line == "[" || line == "]" || line == kBeginOfMerged || line == kEndOfMerged) continue;
    if (line.back() == ',') line.pop_back();
    if (!take(line)) return;
  }
}

bool may_tell_of_clock(std::string_view line) {
  // Nearly all lines are spans, whose phase stands near their start.
  constexpr std::string_view kPhase = "\"ph\":\"";
  const std::size_t phase = line.find(kPhase) + kPhase.size();
  if (phase >= kPhase.size() && phase < line.size() && std::string_view("Xbe").find(line[phase]) != std::string_view::npos) return false;
  return line.find("\"clock\"") != std::string_view::npos || line.find("\"lineage\"") != std::string_view::npos;
}

std::uint64_t read_events(const std::string& path, const std::function<void(Json& event)>& take, bool (*is_wanted)(std::string_view line)) {
  std::uint64_t unreadable = 0;
  read_lines(path, [&](std::string_view line) {
    if (is_wanted != nullptr && !is_wanted(line)) return true;
    Json event = Json::parse(line, nullptr, false);
    if (event.is_object())
      take(event);
    else
      ++unreadable;
    return true;
  });
  return unreadable;
}

void read_events_until(const std::string& path, const std::function<bool(const Json& event)>& take,
                       bool (*is_wanted)(std::string_view line)) {
  read_lines(path, [&](std::string_view line) {
    if (!is_wanted(line)) return true;
    const Json event = Json::parse(line, nullptr, false);
    return !event.is_object() || !take(event);
  });
}

void take_clock(const Json& event, PartClock& clock) {
  const std::string name = text_in(event, "name"), phase = text_in(event, "ph");
  const auto found = event.find("args");
  if (found == event.end()) return;
  const Json& arguments = *found;
  const auto epoch = static_cast<std::uint32_t>(number_in(arguments, "epoch"));
  const auto at = event.find("ts");
  if (name == "ringlet_trace" && phase == "M") {
    clock.clock = text_in(arguments, "clock");
  } else if (const std::string lineage = text_in(arguments, "lineage"); phase == "i" && !lineage.empty()) {
    clock.seats.push_back({text_in(arguments, "job") + " " + lineage, epoch, static_cast<int>(number_in(arguments, "rank"))});
  } else if (phase == "i" && name == "clock" && at != event.end() && at->is_number()) {
    const Reading reading{std::llround(at->get<double>() * 1000), number_in(arguments, "offset_ns"), number_in(arguments, "error_ns")};
    clock.compared.push_back({epoch, reading});
  }
}

}  // namespace ringlet::trace
