#include "tools/command/launch_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "native/environment.hpp"
#include "tools/command/standard_output.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/launch_report.hpp"
#include "tools/tokens/group_token.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::command {

std::optional<int> terminal_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

void declare_launch_options(CLI::App& app, LaunchLine& line) {
  app.add_option("--env", line.environment, "NAME=VALUE for the ranks' environment; may be repeated")->expected(1)->take_all();
  app.add_option("--cwd", line.options.working_directory, "Directory in which the ranks run (a relative PROGRAM is looked up there)")
      ->type_name("DIR");
  app.add_option("--stdin", line.stdin_rank, "The rank that reads the launcher's standard input, or none")->capture_default_str();
  app.add_flag("--no-prefix", line.no_prefix, "Lines without \"[rank] \" before them");
  app.add_option("--output-dir", line.options.output_directory, "Keep each rank's output, unchanged, in DIR/rank-R.log as well")
      ->type_name("DIR");
  app.add_option("--linger", line.linger_seconds, "Seconds from the first failure to SIGTERM for the other ranks")->capture_default_str();
  app.add_option("--grace", line.grace_seconds, "Seconds from SIGTERM to SIGKILL")->capture_default_str();
  app.add_flag("-q,--quiet", line.quiet, "Do not say at the end which rank failed");
  app.add_flag("--json", line.json, "At the end print how each rank ended as a line of JSON; the ranks' stdout goes to stderr");
}

std::optional<int> parse_program_line(CLI::App& app, Arguments arguments, const char* example, std::vector<std::string>& command) {
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  // Without `--` the message must be about that, not about one of the program's own words.
  if (separator == arguments.end()) app.allow_extras();
  if (const auto over = parse_options(app, arguments.first(static_cast<std::size_t>(separator - arguments.begin())))) return over;
  if (separator != arguments.end()) {
    command.assign(separator + 1, arguments.end());
    return std::nullopt;
  }
  const std::string subcommand = app.get_name().substr(app.get_name().find(' ') + 1);
  return usage_error(subcommand, fmt::format("no `--` found: put the program after it, as in `ringlet {} {}`", subcommand, example));
}

std::optional<std::string> convert_seconds(const char* name, double seconds, std::chrono::milliseconds& converted) {
  constexpr double kMaxSeconds = 1e6;
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return fmt::format("{} {}: give seconds from 0 to {}", name, seconds, kMaxSeconds);
  converted = std::chrono::milliseconds(std::llround(seconds * 1000));
  return std::nullopt;
}

std::optional<std::string> convert_launch_line(LaunchLine& line) {
  if (const auto mistake = convert_seconds("--grace", line.grace_seconds, line.options.grace)) return mistake;
  if (const auto mistake = convert_seconds("--linger", line.linger_seconds, line.options.linger)) return mistake;
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
  line.options.helper_path = launch::own_path();
  return find_mistake(line.options);
}

std::string choose_token() {
  if (auto token = native::read_token({}, native::process_variable); !token.empty()) return token;
  TokenAuthenticator randomness("");
  return tokens::make_token(randomness);
}

std::optional<std::string> find_secret(const char* subcommand, const launch::LaunchOptions& options) {
  for (const auto& [name, value] : options.environment)
    if (name.rfind("RINGLET_TOKEN", 0) == 0)
      return fmt::format("--env {}: other users see the command line; set it in the environment of `ringlet {}`", name, subcommand);
  return std::nullopt;
}

int report_launch(const char* subcommand, const LaunchLine& line, const job::JobResult& result) {
  const int exit_code = launch::report(subcommand, result, line.quiet);
  if (line.json) print_out(fmt::format("{}\n", launch::to_json(result)));
  return exit_code;
}

}  // namespace ringlet::command
