#pragma once

#include <sys/types.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/launch/command_process.hpp"
#include "tests/temporary_directory.hpp"

namespace ringlet::test {

struct Span {
  double begin, end;  // microseconds
  std::uint64_t bytes;
  std::uint64_t number;  // of a segment or a message, alike where it is sent and where it is received
};

/// A merged trace.
class MergedTrace {
 public:
  /// `cut`: a process was killed, and may have begun what did not end.
  explicit MergedTrace(const std::string& path, bool cut = false) {
    const nlohmann::json json = nlohmann::json::parse(read_file(path));
    for (const nlohmann::json& event : json["traceEvents"]) take(event);
    CHECK((cut || open_.empty()));
  }

  std::vector<Span> spans(int process, const std::string& name, int peer = -1) const {
    const auto found = spans_.find({process, name, peer});
    return found == spans_.end() ? std::vector<Span>{} : found->second;
  }
  /// Segments or messages, in the order of their numbers.
  std::vector<Span> segments(int process, const std::string& name, int peer) const {
    auto all = spans(process, name, peer);
    std::sort(all.begin(), all.end(), [](const Span& one, const Span& other) { return one.number < other.number; });
    return all;
  }
  std::set<int> processes() const {
    std::set<int> all;
    for (const auto& [key, spans] : spans_) all.insert(std::get<0>(key));
    return all;
  }

  int ends = 0;  // parts that were closed
  std::uint64_t dropped = 0;
  std::vector<std::string> instants{};

 private:
  void take(const nlohmann::json& event) {
    const std::string name = event["name"], phase = event["ph"];
    const int process = event["pid"];
    if (name == "ringlet_trace_end") {
      ++ends;
      dropped += event["args"]["dropped_by_threads"].get<std::uint64_t>() + event["args"]["dropped_by_file"].get<std::uint64_t>();
    }
    if (phase == "i") instants.push_back(name);
    if (phase != "X" && phase != "b" && phase != "e") return;
    const double at = event["ts"];
    CHECK(at > 0);
    if (phase == "X") {
      CHECK(event["dur"].get<double>() >= 0);
      return add(event, at + event["dur"].get<double>());
    }
    const std::pair id(process, event["cat"].get<std::string>() + event["id2"]["local"].get<std::string>());
    if (phase == "b") {
      open_[id] = event;
      return;
    }
    const auto began = open_.find(id);
    REQUIRE(began != open_.end());
    CHECK(began->second["name"] == name);
    CHECK(began->second["ts"].get<double>() <= at);
    add(began->second, at);
    open_.erase(began);
  }

  void add(const nlohmann::json& event, double end) {
    const nlohmann::json& arguments = event["args"];
    spans_[{event["pid"].get<int>(), kind_of(event), arguments.value("peer", -1)}].push_back(
        {event["ts"], end, arguments.value("bytes", std::uint64_t{0}), arguments.value("number", std::uint64_t{0})});
  }

  /// What may overlap has the name of its track.
  static std::string kind_of(const nlohmann::json& event) {
    const std::string name = event["name"];
    if (name.starts_with("messages sent on stream ")) return "message send";
    if (name.starts_with("messages received on stream ")) return "message recv";
    return name.starts_with("send rank ") ? "send" : name;
  }

  std::map<std::tuple<int, std::string, int>, std::vector<Span>> spans_;
  std::map<std::pair<int, std::string>, nlohmann::json> open_;
};

/// The process id that rank `rank` has printed.
inline pid_t traced_pid(const std::string& output, int rank) {
  const std::string mark = "[" + std::to_string(rank) + "] pid ";
  const std::size_t at = output.find(mark);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(output.substr(at + mark.size())));
}

/// The bytes of a process' trace so far; its file has no name.
inline std::uintmax_t traced_bytes(pid_t process) {
  std::uintmax_t bytes = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone))
    if (std::filesystem::read_symlink(entry, gone).string().find("/ringlet-trace-") != std::string::npos)
      if (const auto size = std::filesystem::file_size(entry, gone); !gone) bytes = std::max(bytes, size);
  return bytes;
}

inline std::size_t files_in(const TemporaryDirectory& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory.path()), {}));
}

}  // namespace ringlet::test
