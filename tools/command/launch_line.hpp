#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command/subcommand.hpp"
#include "tools/job/job_result.hpp"
#include "tools/launch/launch_options.hpp"

namespace ringlet::command {

/// The options that `launch` and `serve` have in common, as they stand on the command line.
struct LaunchLine {
  launch::LaunchOptions options;
  std::vector<std::string> environment;
  std::string stdin_rank = "none";
  double grace_seconds = 5;
  double linger_seconds = 2;
  bool no_prefix = false;
  bool quiet = false;
  bool json = false;
};

/// The width of the terminal that a person watches; the ranks write to pipes and cannot see it. Nothing where the output is no terminal.
std::optional<int> terminal_columns();

/// Declares all options but the number of ranks.
void declare_launch_options(CLI::App& app, LaunchLine& line);

/// Reads the options before `--`, as `app` declares them, and the program behind it. Returns an exit code where the command is over.
/// `example`: what a mistake is answered with.
std::optional<int> parse_program_line(CLI::App& app, Arguments arguments, const char* example, std::vector<std::string>& command);

/// Converts a time on the command line; returns a sentence where it cannot be one.
std::optional<std::string> convert_seconds(const char* name, double seconds, std::chrono::milliseconds& converted);

/// Brings the values into the launcher's form; returns a sentence where one is wrong.
std::optional<std::string> convert_launch_line(LaunchLine& line);

/// The group's token from the environment; a fresh one where it has none.
std::string choose_token();

/// Returns a sentence where --env would show a token to all users who see the command line.
std::optional<std::string> find_secret(const char* subcommand, const launch::LaunchOptions& options);

/// Says how the launch ended, in the form that the line asks for; returns the exit code.
int report_launch(const char* subcommand, const LaunchLine& line, const job::JobResult& result);

}  // namespace ringlet::command
