#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command/subcommand.hpp"
#include "tools/launch/launch_options.hpp"

namespace ringlet::command {

/// What `launch` and `serve` have in common on the command line, as it stands there.
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

/// Declares all but the number of ranks.
void declare_launch_options(CLI::App& app, LaunchLine& line);

/// Reads what stands before `--` into what `app` declares, and the program behind it. An exit code where the command is over.
std::optional<int> parse_launch_line(CLI::App& app, Arguments arguments, LaunchLine& line);

/// A time on the command line; a sentence where it cannot be one.
std::optional<std::string> convert_seconds(const char* name, double seconds, std::chrono::milliseconds& converted);

/// Brings the values into the launcher's form; a sentence where one cannot be.
std::optional<std::string> convert_launch_line(LaunchLine& line);

/// Runs the ranks to their end, tells how it went, and returns the exit code.
int launch_ranks(const char* subcommand, LaunchLine line);

/// The group's token from the environment; a fresh one where it has none.
std::string choose_token();

/// A sentence where --env would show a token to all who see the command line.
std::optional<std::string> find_secret(const char* subcommand, const launch::LaunchOptions& options);

/// Says how it ended, as the line wants it said; returns the exit code.
int report_launch(const char* subcommand, const LaunchLine& line, const launch::LaunchResult& result);

}  // namespace ringlet::command
