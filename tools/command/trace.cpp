#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/printable.hpp"
#include "tools/command/merge_progress.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/command/table.hpp"
#include "tools/launch/standard_error.hpp"
#include "tools/trace/merge.hpp"
#include "tools/trace/part_jobs.hpp"
#include "tools/trace/summary.hpp"
#include "tools/trace/trace_part.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kTraceFooter[] = R"(Example:
  ringlet launch -n 4 --trace trace.json -- train_text --steps 50
  ringlet trace summary trace.json --within step
  ringlet trace merge trace.json alpha/trace.0.json beta/trace.1.json

FILE opens in https://ui.perfetto.dev.
`summary` prints of each rank, in seconds: the time from its first record to its last, or in the program's spans that --within names; of that the
time in which it computed (it was in a span of the program's own, and no thread of it waited), in which collectives were under way, and in which a
thread waited. "hidden" is the part of the time under way in which no thread waited; "buckets" are the collectives that average gradients. Then the
program's own spans, by name.
`merge` makes one file, on the clock of the first part, of the parts that ranks write beside FILE where RINGLET_TRACE or a program's own option
names it: of those beside FILE the ones of the newest job, of those that are given all. `launch`, `serve`, `run` and `bench` with --trace do that by
themselves.
Exit codes: 0 done; 1 there are no parts, or a file cannot be read or written; 2 a mistake on the command line; 128 + a signal's number that
ended `merge`.)";

void tell(const std::string& text) { launch::print_error("ringlet trace: {}\n", text); }

std::string seconds_text(double seconds) { return fmt::format("{:.3f}", seconds); }
std::string share_text(double part, double whole) { return whole > 0 ? fmt::format("{:.1f} %", part / whole * 100) : "-"; }

Json to_json(const trace::RankSummary& rank) {
  const auto moved = [](const trace::RankSummary::Moved& moments) {
    return Json{{"seconds", moments.seconds},
                {"hidden_seconds", moments.hidden},
                {"hidden", moments.seconds > 0 ? Json(moments.hidden / moments.seconds) : Json(nullptr)}};
  };
  Json spans = Json::object();
  for (const auto& [name, span] : rank.spans) spans[name] = {{"count", span.count}, {"seconds", span.seconds}};
  return {{"process", rank.process},        {"name", rank.name},
          {"seconds", rank.seconds},        {"computed_seconds", rank.spans.empty() ? Json(nullptr) : Json(rank.computed)},
          {"waited_seconds", rank.waited},  {"collectives", moved(rank.collectives)},
          {"buckets", moved(rank.buckets)}, {"spans", std::move(spans)}};
}

void print_summary(const trace::Summary& summary) {
  std::vector<Cells> rows{{"rank", "seconds", "computed", "under way", "waited", "hidden", "buckets", "hidden"}};
  std::vector<Cells> spans{{"rank", "span", "count", "seconds", "of all", "mean ms"}};
  for (const trace::RankSummary& rank : summary.ranks) {
    const std::string number = fmt::format("{}", rank.process);
    rows.push_back({number, seconds_text(rank.seconds), rank.spans.empty() ? "-" : seconds_text(rank.computed),
                    seconds_text(rank.collectives.seconds), seconds_text(rank.waited),
                    share_text(rank.collectives.hidden, rank.collectives.seconds), seconds_text(rank.buckets.seconds),
                    share_text(rank.buckets.hidden, rank.buckets.seconds)});
    for (const auto& [name, span] : rank.spans)
      spans.push_back({number, printable(name), fmt::format("{}", span.count), seconds_text(span.seconds),
                       share_text(span.seconds, rank.seconds),
                       fmt::format("{:.3f}", span.seconds / static_cast<double>(span.count) * 1e3)});
  }
  for (const std::string& line : aligned(rows)) print_line(line);
  if (spans.size() > 1) print_line("");
  for (const std::string& line : aligned(spans))
    if (spans.size() > 1) print_line(line);
}

int summarize(const std::string& file, const std::optional<std::string>& within, bool json) {
  const trace::Summary summary = trace::summarize(file, within);
  if (json) {
    Json ranks = Json::array();
    for (const trace::RankSummary& rank : summary.ranks) ranks.push_back(to_json(rank));
    print_json({{"file", file}, {"within", within ? Json(*within) : Json(nullptr)}, {"dropped", summary.dropped}, {"ranks", ranks}});
  } else {
    print_summary(summary);
  }
  if (summary.dropped > 0) tell(fmt::format("the trace lacks {} events, as the ranks have said; the sums are too small", summary.dropped));
  return 0;
}

std::string quoted_list(const std::vector<std::string>& files) { return fmt::format("'{}'", fmt::join(files, "', '")); }

/// Parts of other jobs lie beside a file of which an earlier run had more ranks. Whoever names parts means these.
void tell_of_jobs(const trace::PartsByJob& parts, bool are_named) {
  const std::string& one = parts.newest.front();
  if (!parts.others.empty() && are_named)
    tell(fmt::format("{} {} of another job than '{}', and merged all the same, since {} named", quoted_list(parts.others),
                     parts.others.size() == 1 ? "is" : "are", one, parts.others.size() == 1 ? "it is" : "they are"));
  else if (!parts.others.empty())
    tell(fmt::format("left out {}, of another job than '{}', which is newer; parts that the command line names are all merged",
                     quoted_list(parts.others), one));
  if (!parts.without.empty() && !are_named)
    tell(fmt::format("left out {}, which names no group: it is empty, its process came into none, or it is of an earlier job",
                     quoted_list(parts.without)));
}

int merge(const std::string& file, std::vector<std::string> parts, bool json) {
  // It may be a rank's part, where FILE was forgotten.
  if (std::filesystem::exists(file) && !trace::is_merged(file))
    return usage_error("trace",
                       fmt::format("'{}' is there, and was not merged from parts, so it is left as it is; name another FILE", file));
  const bool are_named = !parts.empty();
  if (!are_named) parts = trace::find_parts(file);
  if (parts.empty())
    throw std::runtime_error(
        fmt::format("there is no part of '{}' beside it; ranks write parts where RINGLET_TRACE names this file", file));
  // Nobody else may make it meanwhile, and what cannot be written is told before all is read.
  trace::UnfinishedFile out(file);
  const trace::PartsByJob by_job = trace::sort_by_job(parts);
  tell_of_jobs(by_job, are_named);
  std::vector<std::string> left_out;
  if (!are_named) {
    left_out = by_job.others;
    left_out.insert(left_out.end(), by_job.without.begin(), by_job.without.end());
    parts = by_job.newest;
  }
  MergeProgress progress("trace");
  trace::Merged merged;
  try {
    merged = trace::merge_traces(parts, out, progress.watch());
  } catch (const trace::MergeStopped&) {
    progress.end();
    tell(fmt::format("a signal ended the merging; '{}' and the parts are as they were", file));
    return progress.signal_code();
  }
  progress.end();
  const auto files_at = [&](const std::vector<std::size_t>& places) {
    std::vector<std::string> files;
    for (const std::size_t place : places) files.push_back(parts[place]);
    return files;
  };
  if (json)
    print_json({{"file", file},
                {"parts", parts.size()},
                {"events", merged.events},
                {"dropped", merged.dropped},
                {"unreadable", merged.unreadable},
                {"unaligned", files_at(merged.unaligned)},
                {"endless", files_at(merged.endless)},
                {"left_out", left_out}});
  else
    print_line(fmt::format("{}: {} events of {} {}", file, merged.events, parts.size(), parts.size() == 1 ? "process" : "processes"));
  for (const std::string& part : files_at(merged.unaligned))
    tell(fmt::format("'{}' was not compared with another clock; its times are left as they were", part));
  for (const std::string& part : files_at(merged.endless))
    tell(fmt::format("'{}' ends early: its process was killed, or could not write on, or still writes it", part));
  return 0;
}

}  // namespace

int run_trace(Arguments arguments) {
  std::string action, file;
  std::vector<std::string> parts;
  std::optional<std::string> within;
  bool json = false;
  CLI::App app(
      "Sums up a trace, or merges those of ranks:\n  ringlet trace summary FILE [--within SPAN]\n  ringlet trace merge FILE [PARTS...]",
      "ringlet trace");
  app.footer(kTraceFooter);
  app.add_option("ACTION", action, "summary or merge")->required()->check(CLI::IsMember({"summary", "merge"}));
  app.add_option("FILE", file, "The file to read, or to write")->required();
  app.add_option("PARTS", parts, "merge: the ranks' files, rank 0's first; without any those beside FILE that are named after it");
  app.add_option("--within", within, "summary: only what happened in the program's own spans of this name")->type_name("SPAN");
  app.add_flag("--json", json, "Print JSON");
  if (const auto over = parse_options(app, arguments)) return *over;
  const bool merges = action == "merge";
  if (merges && within) return usage_error("trace", "--within goes with summary");
  if (!merges && !parts.empty()) return usage_error("trace", fmt::format("{}: summary reads one file", parts.front()));
  return merges ? merge(file, std::move(parts), json) : summarize(file, within, json);
}

}  // namespace ringlet::command
