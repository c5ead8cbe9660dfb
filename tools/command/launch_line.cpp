#include "tools/command/launch_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "native/environment.hpp"
#include "tools/command/job_trace.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/launch_report.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::command {

namespace {

constexpr int kRestarts = 3;  // of each rank, where nothing else is said

/// Ranks may run in another directory, where a relative path would name another file.
void make_token_file_absolute() {
  const auto file = native::process_variable("RINGLET_TOKEN_FILE");
  if (file) ::setenv("RINGLET_TOKEN_FILE", std::filesystem::absolute(*file).c_str(), 1);
}

bool read_count(const std::string& text, int& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

/// The user's --env stands behind these variables, and holds.
void add_elastic_variables(const job::RestartPolicy::Options& elastic, std::vector<job::Variable>& environment) {
  // The ranks wait a little longer than the job, so that it is the job that says what is missing.
  constexpr std::int64_t kLongerMs = 60'000;
  std::vector<job::Variable> added{{"RINGLET_ELASTIC", "on"}};
  if (elastic.least > 1) {
    added.push_back({"RINGLET_MIN_RANKS", std::to_string(elastic.least)});
    added.push_back({"RINGLET_MIN_WAIT_MS", std::to_string(elastic.wait.whole_milliseconds() + kLongerMs)});
  }
  environment.insert(environment.begin(), added.begin(), added.end());
}

}  // namespace

std::uint32_t terminal_columns() {
  winsize size{};
  return ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void declare_job_options(CLI::App& app, JobLine& line) {
  app.add_option("--env", line.environment, "NAME=VALUE for the ranks' environment; may be repeated")->expected(1)->take_all();
  app.add_flag("--no-prefix", line.no_prefix, "Lines without \"[rank] \" or \"[rank machine] \" before them");
  app.add_option("--trace", line.trace, "Write what each rank does when to FILE, which opens in ui.perfetto.dev (docs/trace.md)")
      ->type_name("FILE");
  app.add_option("--linger", line.linger_seconds, "Seconds from the first failure to SIGTERM for the other ranks")->capture_default_str();
  app.add_option("--grace", line.grace_seconds, "Seconds from SIGTERM to SIGKILL")->capture_default_str();
  app.add_flag("-q,--quiet", line.quiet,
               "Do not say at the end which rank failed; with --elastic: how ranks come and go, but for the last line");
}

void declare_elastic_option(CLI::App& app, JobLine& line) {
  app.add_option(
         "--elastic", line.elastic,
         "Where a rank is lost the others go on, if the program can (docs/elastic.md); the exit code is 0 if one of them ends well. "
         "With bounds, such as 2:8, ranks that fail are started again, and with fewer than MIN the others wait for --min-wait seconds")
      ->expected(0, 1)
      ->type_name("[MIN:MAX]");
  app.add_option("--restarts", line.restarts,
                 "After how many failures of its own each rank is started again; 3 where --elastic has bounds, else 0");
  app.add_option("--min-wait", line.min_wait_seconds,
                 "Seconds for which a job waits that has fewer than MIN ranks, before it ends; 600 if not given");
}

std::optional<std::string> convert_elastic(const JobLine& line, RankBounds& bounds) {
  constexpr int kMaxRestarts = 1'000'000;
  if (line.min_wait_seconds && (!line.elastic || line.elastic->empty()))
    return fmt::format("--min-wait {}: it goes with bounds, such as --elastic 2:8, of which the first is waited for",
                       *line.min_wait_seconds);
  if (line.restarts && !line.elastic) return "--restarts goes with --elastic: ranks are started again where the others go on meanwhile";
  if (line.restarts && (*line.restarts < 0 || *line.restarts > kMaxRestarts))
    return fmt::format("--restarts {}: give a number from 0 to {}", *line.restarts, kMaxRestarts);
  if (!line.elastic || line.elastic->empty()) return std::nullopt;
  const auto colon = line.elastic->find(':');
  const int most = bounds.most;
  if (colon == std::string::npos || !read_count(line.elastic->substr(0, colon), bounds.least) ||
      !read_count(line.elastic->substr(colon + 1), bounds.most) || bounds.least < 1 || bounds.most > most)
    return fmt::format("--elastic {}: write it as MIN:MAX, such as 2:8, with numbers of ranks from 1 to {}", *line.elastic, most);
  if (bounds.least > bounds.most)
    return fmt::format("--elastic {}: MIN is more than MAX; perhaps {}:{} is meant", *line.elastic, bounds.most, bounds.least);
  return std::nullopt;
}

std::optional<std::string> check_bounds(const JobLine& line, const RankBounds& bounds, int ranks) {
  if (ranks >= bounds.least && ranks <= bounds.most) return std::nullopt;
  return fmt::format("--elastic {}: the job would begin with {} {}, by -n or the hosts' slots; have it begin with {} to {}", *line.elastic,
                     ranks, ranks == 1 ? "rank" : "ranks", bounds.least, bounds.most);
}

void declare_launch_options(CLI::App& app, LaunchLine& line) {
  declare_job_options(app, line);
  app.add_option("--cwd", line.options.directory, "Directory in which the ranks run (a relative PROGRAM is looked up there)")
      ->type_name("DIR");
  app.add_option("--stdin", line.stdin_rank, "The rank that reads the launcher's standard input, or none")->capture_default_str();
  app.add_option("--output-dir", line.options.output_directory, "Keep each rank's output, unchanged, in DIR/rank-R.log as well")
      ->type_name("DIR");
  app.add_flag("--json", line.json, "At the end print how each rank ended as a line of JSON; the ranks' stdout goes to stderr");
}

std::optional<int> parse_program_line(CLI::App& app, Arguments arguments, const char* example, JobLine& line) {
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  // Without `--` the message must be about that, not about one of the program's own words.
  if (separator == arguments.end()) app.allow_extras();
  if (const auto over = parse_options(app, arguments.first(static_cast<std::size_t>(separator - arguments.begin())))) return over;
  const std::string subcommand = app.get_name().substr(app.get_name().find(' ') + 1);
  if (separator == arguments.end())
    return usage_error(subcommand, fmt::format("no `--` found: put the program after it, as in `ringlet {} {}`", subcommand, example));
  line.command.assign(separator + 1, arguments.end());
  if (!line.command.empty() && !line.command.front().empty()) return std::nullopt;
  return usage_error(subcommand, fmt::format("no program to start: put it after `--`, as in `ringlet {} {}`", subcommand, example));
}

std::optional<std::string> convert_seconds(const char* name, double seconds, Duration& converted) {
  constexpr double kMaxSeconds = 1e6;
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return fmt::format("{} {}: give seconds from 0 to {}", name, seconds, kMaxSeconds);
  converted = Duration::milliseconds(std::llround(seconds * 1000));
  return std::nullopt;
}

std::optional<std::string> check_ranks(const char* name, int ranks) {
  if (ranks >= 1 && ranks <= launch::kMaxRanks) return std::nullopt;
  return fmt::format("{} {}: the number of ranks must be from 1 to {}", name, ranks, launch::kMaxRanks);
}

std::optional<std::string> convert_job_line(JobLine& line, job::JobOptions& job) {
  job.start.arguments.assign(line.command.begin() + 1, line.command.end());
  for (const std::string& entry : line.environment) {
    auto variable = launch::parse_variable(entry);
    if (!variable) return fmt::format("--env {}: write it as NAME=VALUE", entry);
    job.start.environment.push_back(std::move(*variable));
  }
  job.prefix = !line.no_prefix;
  if (auto mistake = open_trace_parts(line.trace, line.trace_parts)) return mistake;
  job.start.trace = !line.trace.empty();
  RankBounds bounds;
  if (auto mistake = convert_elastic(line, bounds)) return mistake;
  if (line.elastic && !line.elastic->empty()) job.most = bounds.most;
  if (line.elastic) {
    job::RestartPolicy::Options& elastic = job.end.elastic.emplace();
    elastic.least = bounds.least;
    elastic.limit = line.restarts.value_or(line.elastic->empty() ? 0 : kRestarts);
    if (line.min_wait_seconds)
      if (auto mistake = convert_seconds("--min-wait", *line.min_wait_seconds, elastic.wait)) return mistake;
    add_elastic_variables(elastic, job.start.environment);
  }
  job.quiet = line.quiet;
  if (auto mistake = convert_seconds("--grace", line.grace_seconds, job.end.grace)) return mistake;
  if (auto mistake = convert_seconds("--linger", line.linger_seconds, job.end.linger)) return mistake;
  return launch::find_reserved(job.start.environment);
}

std::optional<std::string> convert_launch_line(LaunchLine& line) {
  launch::LaunchOptions& options = line.options;
  options.program = line.command.front();
  options.stdout_to_stderr = line.json;
  options.helper_path = launch::own_path();
  options.job.every_machine = true;
  job::StartRanks& start = options.job.start;
  if (!line.json) start.terminal_columns = terminal_columns();
  if (line.stdin_rank != "none") {
    int rank = 0;
    if (!CLI::detail::lexical_cast(line.stdin_rank, rank)) return fmt::format("--stdin {}: give a rank's number or none", line.stdin_rank);
    if (rank < 0 || rank >= options.world_size)
      return fmt::format("--stdin {}: there is no such rank; of {} ranks the last is {}", rank, options.world_size, options.world_size - 1);
    start.has_input = true;
    start.input_rank = static_cast<std::uint32_t>(rank);
  }
  return convert_job_line(line, options.job);
}

std::string choose_token() {
  const std::string token = native::read_token({}, native::process_variable);
  return token.empty() ? fresh_token() : token;
}

std::optional<std::string> find_secret(const char* subcommand, const launch::LaunchOptions& options) {
  for (const job::Variable& variable : options.job.start.environment)
    if (variable.name.rfind("RINGLET_TOKEN", 0) == 0)
      return fmt::format("--env {}: other users see the command line; set it in the environment of `ringlet {}`", variable.name,
                         subcommand);
  return std::nullopt;
}

int run_launch_line(const char* subcommand, LaunchLine& line, const std::function<job::JobResult()>& launch) {
  make_token_file_absolute();
  JobTrace trace(subcommand, std::move(line.trace_parts));
  line.options.on_trace = trace.taker();
  job::JobResult result;
  try {
    result = launch();
  } catch (const launch::LaunchError& error) {
    result.exit_code = error.exit_code();
    result.error = error.what();
  }
  const int exit_code = launch::report(subcommand, result, line.quiet && !line.elastic);
  trace.finish(result);
  if (line.json) print_json(launch::to_json(result, "host"));
  return exit_code;
}

}  // namespace ringlet::command
