#include "tools/command/status_table.hpp"

#include <fmt/format.h>

#include "tools/command/machine_list.hpp"
#include "tools/command/table.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;

std::string text_or_dash(const Json& of, const char* key) {
  const auto found = of.find(key);
  if (found == of.end() || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>().empty() ? "-" : found->get<std::string>();
  return found->dump();
}

std::string bytes_or_dash(const Json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number_unsigned() ? bytes_text(found->get<std::uint64_t>()) : "-";
}

double seconds_of(const Json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? found->get<double>() : 0;
}

/// Returns a text such as "all_reduce(sum, f32 x 1000, ring) number 41 of stream 1".
std::string operation_text(const Json& operation) {
  const std::uint64_t stream = operation.value("stream", std::uint64_t{0});
  return fmt::format("{} number {}{}{}", operation.value("call", ""), operation.value("number", std::uint64_t{0}),
                     stream == 0 ? "" : fmt::format(" of stream {}", stream), operation.value("group", ""));
}

std::string running_text(const Json& running) {
  const Json& first = running.front();
  std::string text = fmt::format("in {} for {:.1f} s", operation_text(first), seconds_of(first, "seconds"));
  const Json waits_for = first.value("waits_for", Json::array());
  std::string ranks;
  for (const Json& rank : waits_for) ranks += (ranks.empty() ? "" : ", ") + rank.dump();
  if (!ranks.empty()) text += fmt::format(", waiting for {} {}", waits_for.size() == 1 ? "rank" : "ranks", ranks);
  if (running.size() > 1) text += fmt::format(", and {} more", running.size() - 1);
  return text;
}

std::string does_text(const Json& rank) {
  const std::string state = rank.value("state", "");
  if (state == "in_operation" && rank.contains("running") && !rank["running"].empty()) return running_text(rank["running"]);
  if (state == "computing") {
    const Json last = rank.value("last", Json());
    return last.is_object() ? fmt::format("computing for {:.1f} s", seconds_of(last, "seconds")) : "computing, nothing called yet";
  }
  if (state == "not_answering") return "not answering";
  return state == "not_asked" ? "not asked" : state;
}

/// Returns a text such as "tcp" or "tcp, aes256gcm".
std::string links_text(const Json& rank) {
  const std::string links = text_or_dash(rank, "links"), cipher = text_or_dash(rank, "cipher");
  return cipher == "-" || cipher == "none" ? links : links + ", " + cipher;
}

Cells status_row(const Json& rank) {
  const Json last = rank.value("last", Json());
  return {text_or_dash(rank, "rank"),
          text_or_dash(rank, "host"),
          text_or_dash(rank, "pid"),
          text_or_dash(rank, "program"),
          does_text(rank),
          last.is_object() ? operation_text(last) : "-",
          text_or_dash(rank, "operations"),
          bytes_or_dash(rank, "bytes_sent"),
          bytes_or_dash(rank, "bytes_received"),
          links_text(rank)};
}

/// Returns a text such as "; epoch 2; 1 rank lost and 1 joined; the last change: without rank 0, after 12.3 ms: lost rank 0", or nothing.
std::string changes_text(const Json& elastic) {
  if (!elastic.is_object()) return "";
  const auto lost = elastic.value("lost_ranks", std::uint64_t{0}), joined = elastic.value("joined_ranks", std::uint64_t{0});
  std::string text =
      fmt::format("; epoch {}; {} {} lost and {} joined", elastic.value("epoch", 0), lost, lost == 1 ? "rank" : "ranks", joined);
  const Json change = elastic.value("change", Json());
  if (!change.is_object()) return text;
  const Json gone = change.value("lost", Json::array());
  std::string ranks;
  for (const Json& rank : gone) ranks += (ranks.empty() ? "" : ", ") + rank.dump();
  text += "; the last change: ";
  if (!gone.empty()) text += fmt::format("without {} {}", gone.size() == 1 ? "rank" : "ranks", ranks);
  if (const int count = change.value("joined", 0); count > 0) text += fmt::format("{} joined", count);
  text += fmt::format(", after {:.1f} ms", seconds_of(change, "milliseconds"));
  return change.value("cause", Json()).is_string() ? text + ": " + change["cause"].get<std::string>() : text;
}

/// Returns what rank 0 says of the parts of an all-reduce: "; rank 2 has 0.25 of the others' speed and owns no part", or nothing.
std::string parts_text(const Json& ranks) {
  if (ranks.empty()) return "";
  const Json parts = ranks.front().value("parts", Json());
  return parts.is_string() ? "; " + parts.get<std::string>() : "";
}

}  // namespace

std::vector<std::string> status_table(const Json& report, bool colours) {
  const Json ranks = report.value("ranks", Json::array());
  std::vector<Cells> rows{{"RANK", "HOST", "PID", "PROGRAM", "DOES", "LAST OPERATION", "DONE", "SENT", "RECEIVED", "LINKS"}};
  for (const Json& rank : ranks) rows.push_back(status_row(rank));
  std::vector<std::string> lines = aligned(rows);
  for (std::size_t i = 0; i < lines.size() && colours; ++i) {
    const bool still = i > 0 && (ranks[i - 1].value("state", "") == "not_answering" || ranks[i - 1].value("stalled", false));
    if (i == 0 || still) lines[i] = highlighted(lines[i], i == 0 ? "1" : "31");
  }
  const std::string size = text_or_dash(report, "size");
  std::string title = fmt::format("world {}: {} {}", text_or_dash(report, "world"), size, size == "1" ? "rank" : "ranks");
  if (report.contains("failure") && report["failure"].is_string()) title += ", failed: " + report["failure"].get<std::string>();
  lines.insert(lines.begin(), title + changes_text(report.value("elastic", Json())) + parts_text(ranks));
  return lines;
}

}  // namespace ringlet::command
