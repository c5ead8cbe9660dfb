#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "tools/command/machine_list.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/command/status_client.hpp"
#include "tools/command/status_table.hpp"
#include "tools/command/stop_signals.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

constexpr int kNothingRuns = 3;
constexpr int kStalled = 4;
// A rank needs less than a second to ask the others.
constexpr std::chrono::milliseconds kPatience{1500};
constexpr Duration kBetweenLooks = Duration::seconds(1);

constexpr char kStatusFooter[] = R"(Example:
  ringlet status --watch

Shows what every rank of each group of yours does that has a rank on this machine: computing, or in which operation, for how long, and waiting for
whom; of an elastic group also how often it has changed, and who left it last, and why; and, unless RINGLET_PARTS is even, which ranks own smaller parts
of an all-reduce, and what their links carry. One rank here is asked, and asks all others. Programs started
with RINGLET_STATUS=off cannot be asked.
Exit codes: 0 all is well; 3 nothing of yours runs here; 4 something is stalled: an operation takes longer than its warning limit (RINGLET_WARN_MS), a
rank does not answer, or the group has failed; 2 a mistake on the command line.)";

std::optional<std::uint64_t> parse_world(const std::string& text) {
  if (text.empty() || text.size() > 16 || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 16);
}

bool is_stalled(const nlohmann::ordered_json& report) { return report.value("stalled", true); }

int exit_code(const std::vector<nlohmann::ordered_json>& reports) {
  if (reports.empty()) return kNothingRuns;
  return std::any_of(reports.begin(), reports.end(), is_stalled) ? kStalled : 0;
}

/// Prints the reports and returns the number of lines.
std::size_t print(const std::vector<nlohmann::ordered_json>& reports, bool json, bool colours) {
  std::size_t lines = 0;
  if (json) {
    print_json({{"worlds", reports}});
  } else {
    for (const auto& report : reports)
      for (const std::string& line : status_table(report, colours)) {
        print_line(line);
        ++lines;
      }
  }
  return lines;
}

void explain_nothing(const StatusFilter& filter) {
  if (filter.process)
    launch::print_error("ringlet status: no rank with process number {} can be asked; `ringlet status` shows which can\n", *filter.process);
  else if (filter.world)
    launch::print_error("ringlet status: no rank of world {:016x} runs here; `ringlet status` shows which do\n", *filter.world);
  else
    launch::print_error("ringlet status: no program of yours runs as part of a group on this machine\n");
}

int watch(const StatusFilter& filter, bool json) {
  UvLoop loop;
  const StopSignals signals(loop);
  const bool terminal = !json && ::isatty(STDOUT_FILENO) == 1;
  std::size_t drawn = 0;
  int code = 0;
  while (!signals.came() && !is_output_lost()) {
    const auto reports = ask_worlds(filter, kPatience);
    code = exit_code(reports);
    if (terminal && drawn > 0) print_out(fmt::format("\x1b[{}A\r\x1b[J", drawn));
    drawn = print(reports, json, terminal && wants_colours());
    bool over = false;
    loop.after(kBetweenLooks, [&over] { over = true; });
    while (!over && !signals.came() && !is_output_lost()) loop.wait();
  }
  return code;
}

}  // namespace

int run_status(Arguments arguments) {
  StatusFilter filter;
  std::string world;
  bool json = false;
  bool follow = false;
  CLI::App app("Shows what the ranks of running groups do, and whom they wait for.", "ringlet status");
  app.footer(kStatusFooter);
  app.add_option("--pid", filter.process, "Ask the rank with this process number")->type_name("N");
  app.add_option("--world", world, "Show only this world, by the number that is shown")->type_name("ID");
  app.add_flag("--json", json, "Print one JSON object, {\"worlds\": [...]}, in a line");
  app.add_flag("--watch", follow, "Look again each second, until Ctrl-C");
  if (const auto over = parse_options(app, arguments)) return *over;
  if (filter.process && *filter.process < 1)
    return usage_error("status", fmt::format("--pid {}: give the number of a process, as `ringlet status` shows them", *filter.process));
  if (!world.empty() && !(filter.world = parse_world(world)))
    return usage_error("status", fmt::format("--world '{}': give up to 16 hexadecimal digits, as `ringlet status` shows them", world));
  if (follow) return watch(filter, json);
  const auto reports = ask_worlds(filter, kPatience);
  if (!reports.empty() || json) print(reports, json, wants_colours());
  if (reports.empty()) explain_nothing(filter);
  return exit_code(reports);
}

}  // namespace ringlet::command
