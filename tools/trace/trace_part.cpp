#include "tools/trace/trace_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "tools/trace/trace_reader.hpp"

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

std::int64_t time_in(const Json& event, const char* name) { return std::llround(event[name].get<double>() * 1000); }

bool is_metadata(const Json& event, std::string_view name) { return event["ph"] == "M" && event["name"] == name; }

std::uint64_t dropped_in(const Json& event) {
  if (!is_metadata(event, "ringlet_trace_end")) return 0;
  return static_cast<std::uint64_t>(number_in(event["args"], "dropped_by_threads") + number_in(event["args"], "dropped_by_file"));
}

bool is_merged(const std::string& file) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) return false;
  std::array<char, kBeginOfMerged.size() + 1> begin{};
  std::ifstream stream(file);
  stream.read(begin.data(), begin.size());
  const std::string_view read(begin.data(), static_cast<std::size_t>(stream.gcount()));
  return read.starts_with(kBeginOfMerged) && read.ends_with('\n');
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

bool may_tell_of_clock(std::string_view line) {
  // Nearly all lines are spans, whose phase stands near their start.
  constexpr std::string_view kPhase = "\"ph\":\"";
  const std::size_t phase = line.find(kPhase) + kPhase.size();
  if (phase >= kPhase.size() && phase < line.size() && std::string_view("Xbe").find(line[phase]) != std::string_view::npos) return false;
  return line.find("\"clock\"") != std::string_view::npos || line.find("\"lineage\"") != std::string_view::npos;
}

void take_clock(const Json& event, PartClock& clock) {
  if (is_metadata(event, "ringlet_trace")) clock.clock = text_in(event["args"], "clock");
  const auto found = event.find("args");
  if (event["ph"] != "i" || found == event.end()) return;
  const Json& arguments = *found;
  const auto epoch = static_cast<std::uint32_t>(number_in(arguments, "epoch"));
  if (arguments.contains("lineage"))
    clock.seats.push_back(
        {text_in(arguments, "job") + " " + text_in(arguments, "lineage"), epoch, static_cast<int>(number_in(arguments, "rank"))});
  else if (event["name"] == "clock")
    clock.compared.push_back({epoch, {time_in(event, "ts"), number_in(arguments, "offset_ns"), number_in(arguments, "error_ns")}});
}

}  // namespace ringlet::trace
