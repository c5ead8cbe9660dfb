#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "native/command/subcommand.hpp"
#include "native/launch/launch_report.hpp"
#include "native/launch/launcher.hpp"

namespace ringlet::command {

namespace {

constexpr char kFooter[] = R"(Example:
  ringlet launch -n 4 -- ./train --epochs 3

Each rank gets RINGLET_RANK, RINGLET_WORLD_SIZE and RINGLET_COORDINATOR; ringlet::init() needs nothing else. On a terminal also
RINGLET_TERMINAL_COLUMNS, the width that is left for a rank's own progress bar.
Exit code: 0 if all ranks exited with 0, else that of the first rank that failed (128 + signal if a signal killed it);
126 or 127 if PROGRAM cannot be run, 128 + signal after SIGINT or SIGTERM, 2 for a mistake on the command line.)";

/// The options as they stand on the command line.
struct LaunchCommandLine {
  launch::LaunchOptions options;
  std::vector<std::string> environment;
  std::string stdin_rank = "none";
  double grace_seconds = 5;
  double linger_seconds = 2;
  bool no_prefix = false;
  bool quiet = false;
  bool json = false;
};

void declare(CLI::App& app, LaunchCommandLine& line) {
  app.footer(kFooter);
  app.add_option("-n,--ranks", line.options.world_size, "How many ranks to start")->required();
  app.add_option("--env", line.environment, "NAME=VALUE for the ranks' environment; may be repeated")->expected(1)->take_all();
  app.add_option("--cwd", line.options.working_directory, "Directory in which the ranks run (a relative PROGRAM is looked up there)");
  app.add_option("--stdin", line.stdin_rank, "The rank that reads the launcher's standard input, or none")->capture_default_str();
  app.add_flag("--no-prefix", line.no_prefix, "Lines without \"[rank] \" before them");
  app.add_option("--output-dir", line.options.output_directory, "Keep each rank's output, unchanged, in DIR/rank-R.log as well")
      ->type_name("DIR");
  app.add_option("--linger", line.linger_seconds, "Seconds from the first failure to SIGTERM for the other ranks")->capture_default_str();
  app.add_option("--grace", line.grace_seconds, "Seconds from SIGTERM to SIGKILL")->capture_default_str();
  app.add_flag("-q,--quiet", line.quiet, "Do not say at the end which rank failed");
  app.add_flag("--json", line.json, "At the end print how each rank ended as a line of JSON; the ranks' stdout goes to stderr");
}

/// The ranks write to pipes, so they cannot see that a person looks on.
std::optional<int> terminal_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

/// Brings the values into the launcher's form; a sentence where one cannot be.
std::optional<std::string> convert(LaunchCommandLine& line) {
  constexpr double kMostSeconds = 1e6;
  for (const auto& [name, seconds] : {std::pair("--grace", line.grace_seconds), std::pair("--linger", line.linger_seconds)})
    if (!(seconds >= 0 && seconds <= kMostSeconds)) return fmt::format("{} {}: give seconds from 0 to {}", name, seconds, kMostSeconds);
  line.options.grace = std::chrono::milliseconds(std::llround(line.grace_seconds * 1000));
  line.options.linger = std::chrono::milliseconds(std::llround(line.linger_seconds * 1000));
  for (const std::string& entry : line.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) return fmt::format("--env {}: write it as NAME=VALUE", entry);
    line.options.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  if (line.stdin_rank != "none") {
    int rank = 0;
    if (!CLI::detail::lexical_cast(line.stdin_rank, rank)) return fmt::format("--stdin {}: give a rank's number or none", line.stdin_rank);
    line.options.stdin_rank = rank;
  }
  line.options.prefix = !line.no_prefix;
  line.options.stdout_to_stderr = line.json;
  if (!line.json) line.options.terminal_columns = terminal_columns();
  return std::nullopt;
}

}  // namespace

int run_launch(Arguments arguments) {
  LaunchCommandLine line;
  CLI::App app("Runs PROGRAM as N ranks of one group on this machine:\n  ringlet launch -n N [OPTIONS] -- PROGRAM [ARGS...]",
               "ringlet launch");
  declare(app, line);
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  // Without `--` the program's own words must not be the mistake that is told.
  if (separator == arguments.end()) app.allow_extras();
  if (const auto over = parse_options(app, arguments.first(static_cast<std::size_t>(separator - arguments.begin())))) return *over;
  if (separator == arguments.end())
    return usage_error("launch", "no `--` found: put the program after it, as in `ringlet launch -n 4 -- ./train`");
  line.options.command.assign(separator + 1, arguments.end());
  line.options.helper_path = own_path();
  std::optional<std::string> mistake = convert(line);
  if (!mistake) mistake = find_mistake(line.options);
  if (mistake) return usage_error("launch", *mistake);

  launch::Launcher launcher(std::move(line.options));
  const launch::LaunchResult result = launcher.run();
  if (!result.error.empty()) fmt::print(stderr, "ringlet launch: {}\n", result.error);
  if (!result.message.empty() && !line.quiet) fmt::print(stderr, "ringlet launch: {}\n", result.message);
  if (line.json) fmt::print("{}\n", launch::to_json(result));
  return result.exit_code;
}

}  // namespace ringlet::command
