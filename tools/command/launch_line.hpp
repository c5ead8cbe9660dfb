#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/subcommand.hpp"
#include "tools/job/job_result.hpp"
#include "tools/launch/launch_options.hpp"
#include "tools/trace/part_files.hpp"

namespace ringlet::command {

/// The options that `launch`, `serve` and `run` have in common, as they stand on the command line.
struct JobLine {
  std::vector<std::string> command, environment;
  double grace_seconds = 5, linger_seconds = 2;
  bool no_prefix = false, quiet = false;
  std::string trace;                              // a file; empty: none
  std::unique_ptr<trace::PartFiles> trace_parts;  // of that file, once the line is converted
  std::optional<std::string> elastic;             // "2:8", or empty
  std::optional<int> restarts;
  std::optional<double> min_wait_seconds;
};

/// How many ranks an elastic job has.
struct RankBounds {
  int least = 1, most = static_cast<int>(job::kMaxWorldSize);
};

/// The options that `launch` and `serve` have in common.
struct LaunchLine : JobLine {
  launch::LaunchOptions options;
  std::string stdin_rank = "none";
  bool json = false;
};

/// The width of the terminal that a person watches; the ranks write to pipes and cannot see it. 0 where the output is no terminal.
std::uint32_t terminal_columns();

/// Declares what is in JobLine.
void declare_job_options(CLI::App& app, JobLine& line);
/// Declares --elastic, --restarts and --min-wait.
void declare_elastic_option(CLI::App& app, JobLine& line);
/// Declares all options but the number of ranks.
void declare_launch_options(CLI::App& app, LaunchLine& line);

/// Reads the options before `--`, as `app` declares them, and the program behind it, which is not empty. Returns an exit code where the
/// command is over. `example`: what a mistake is answered with.
std::optional<int> parse_program_line(CLI::App& app, Arguments arguments, const char* example, JobLine& line);

/// Converts a time on the command line; returns a sentence where it cannot be one.
std::optional<std::string> convert_seconds(const char* name, double seconds, Duration& converted);

/// Returns a sentence where one machine cannot have so many ranks.
std::optional<std::string> check_ranks(const char* name, int ranks);

/// Reads the bounds of --elastic; returns a sentence where they are none, or where --restarts or --min-wait cannot be.
std::optional<std::string> convert_elastic(const JobLine& line, RankBounds& bounds);
/// Returns a sentence where the job would not begin with a number of ranks within the bounds.
std::optional<std::string> check_bounds(const JobLine& line, const RankBounds& bounds, int ranks);

/// Bring the values into the form of a job, or of the launcher; return a sentence where one is wrong.
std::optional<std::string> convert_job_line(JobLine& line, job::JobOptions& job);
std::optional<std::string> convert_launch_line(LaunchLine& line);

/// The group's token from the environment; a fresh one where it has none.
std::string choose_token();

/// Returns a sentence where --env would show a token to all users who see the command line.
std::optional<std::string> find_secret(const char* subcommand, const launch::LaunchOptions& options);

/// Launches by the line's own options, and says how it ended in the form that the line asks for; returns the exit code.
int run_launch_line(const char* subcommand, LaunchLine& line, const std::function<job::JobResult()>& launch);

}  // namespace ringlet::command
