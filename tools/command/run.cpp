#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "native/environment.hpp"
#include "tools/agent/agent.hpp"
#include "tools/command/discovery_line.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/run_on_machines.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/launch/rank_environment.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kRunFooter[] = R"(Example:
  ringlet run --group home -- /opt/train/train --epochs 3

Starts PROGRAM as ranks of one group on every machine where `ringlet up --group NAME` runs with the same token (RINGLET_TOKEN or
RINGLET_TOKEN_FILE), one rank on each unless -n or --per-machine says otherwise. Rank 0 is on the first machine by name. Each machine starts
only what its owner has allowed there (`ringlet up --allow`), looked up by the same absolute path, or by that of --program. Arguments are not
restricted: allow only programs that may be given any. --env sets no variable that makes programs load other code (LD_*, DYLD_*, PATH, PYTHON*
and the like). The ranks' standard input is empty. This program says that it is there every 2 s; after 20 s of silence (Ctrl-Z, too), when it
ends or the connection breaks, the machines end the job.
Exit codes: those of `ringlet launch`: 0 if all ranks exited with 0, else that of the first rank that failed (128 + signal if a signal killed
it); 126 or 127 if PROGRAM is not allowed or cannot be run, 128 + signal after SIGINT or SIGTERM, 1 if a machine is lost, 2 for a mistake on the
command line; and 3 if the machines are not found.)";

constexpr std::size_t kMaxCommandBytes = 512 * 1024;

struct RunLine {
  DiscoveryLine discovery;
  std::string group;
  std::optional<int> total, per_machine;
  std::vector<std::string> machines, programs, environment, command;
  std::string directory;
  double wait_seconds = 5, grace_seconds = 5, linger_seconds = 2;
  int at_least = 1;
  bool no_prefix = false, quiet = false;
};

void declare(CLI::App& app, RunLine& line) {
  app.footer(kRunFooter);
  app.add_option("--group", line.group, "The group whose machines are to run it")->required()->type_name("NAME");
  app.add_option("-n,--ranks", line.total, "How many ranks in all, spread evenly over the machines");
  app.add_option("--per-machine", line.per_machine, "How many ranks on each machine; 1 where neither is said");
  app.add_option("--machines", line.machines, "Only these machines, by name with commas between; all must take part")
      ->delimiter(',')
      ->type_name("NAMES");
  app.add_option("--program", line.programs, "MACHINE=PATH: what PROGRAM is called on that machine; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--cwd", line.directory, "Directory in which the ranks run; else that in which `ringlet up` was started")
      ->type_name("DIR");
  app.add_option("--env", line.environment, "NAME=VALUE for the ranks' environment; may be repeated")->expected(1)->take_all();
  app.add_option("--wait", line.wait_seconds, "How many seconds to wait for the machines at most")->capture_default_str();
  app.add_option("--at-least", line.at_least, "How many machines must take part")->capture_default_str();
  app.add_flag("--no-prefix", line.no_prefix, "Lines without \"[rank machine] \" before them");
  app.add_option("--linger", line.linger_seconds, "Seconds from the first failure to SIGTERM for the other ranks")->capture_default_str();
  app.add_option("--grace", line.grace_seconds, "Seconds from SIGTERM to SIGKILL")->capture_default_str();
  app.add_flag("-q,--quiet", line.quiet, "Do not say at the end which rank failed");
  declare_discovery_options(app, line.discovery);
}

std::optional<std::string> convert_environment(const RunLine& line, job::JobOptions& job) {
  for (const std::string& entry : line.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) return fmt::format("--env {}: write it as NAME=VALUE", entry);
    const std::string name = entry.substr(0, equals);
    if (const auto why = agent::find_forbidden(name)) return fmt::format("--env {}: {} {}", entry, name, *why);
    if (launch::is_reserved_variable(name)) return fmt::format("--env {}: the agents themselves set this variable for their ranks", entry);
    job.start.environment.push_back({name, entry.substr(equals + 1)});
  }
  if (job.start.environment.size() > agent::kMaxVariables)
    return fmt::format("--env: {} variables; at most {} can be given", job.start.environment.size(), agent::kMaxVariables);
  return std::nullopt;
}

std::optional<std::string> convert_command(const RunLine& line, RunOnMachines& options) {
  if (line.command.empty() || line.command.front().empty())
    return std::string("no program to start: put it after `--`, as in `ringlet run --group home -- /opt/train/train`");
  if (line.command.front().find('/') == std::string::npos)
    return fmt::format("'{}': give the program's path; other machines do not look it up in this one's PATH", line.command.front());
  options.program = std::filesystem::absolute(line.command.front()).lexically_normal().string();
  options.job.start.arguments.assign(line.command.begin() + 1, line.command.end());
  if (options.job.start.arguments.size() > agent::kMaxArguments)
    return fmt::format("{} arguments; at most {} can be given", options.job.start.arguments.size(), agent::kMaxArguments);
  std::size_t bytes = 0;
  for (const std::string& argument : options.job.start.arguments) bytes += argument.size();
  for (const job::Variable& variable : options.job.start.environment) bytes += variable.name.size() + variable.value.size();
  if (bytes > kMaxCommandBytes)
    return fmt::format("arguments and variables have {} bytes together; at most {} can be given", bytes, kMaxCommandBytes);
  for (const std::string& entry : line.programs) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.compare(equals + 1, 1, "/") != 0)
      return fmt::format("--program {}: write it as MACHINE=PATH, with an absolute path", entry);
    options.programs.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return std::nullopt;
}

std::optional<std::string> convert_numbers(const RunLine& line, RunOnMachines& options) {
  if (line.total && line.per_machine) return std::string("-n and --per-machine: give one of the two");
  if (line.total && (*line.total < 1 || *line.total > static_cast<int>(job::kMaxWorldSize)))
    return fmt::format("-n {}: the number of ranks must be from 1 to {}", *line.total, job::kMaxWorldSize);
  const int per_machine = line.per_machine.value_or(1);
  if (per_machine < 1 || per_machine > static_cast<int>(job::kMaxRanksPerMachine))
    return fmt::format("--per-machine {}: the number of ranks must be from 1 to {}", per_machine, job::kMaxRanksPerMachine);
  if (line.at_least < 1) return fmt::format("--at-least {}: at least 1 machine must take part", line.at_least);
  options.job.wish = {line.total, per_machine};
  options.job.at_least = options.search.at_least = line.at_least;
  const auto seconds = [](const char* name, double value, Duration& into) {
    std::chrono::milliseconds converted{};
    const auto mistake = convert_seconds(name, value, converted);
    into = Duration::milliseconds(converted.count());
    return mistake;
  };
  if (auto mistake = seconds("--wait", line.wait_seconds, options.search.wait)) return mistake;
  if (auto mistake = seconds("--linger", line.linger_seconds, options.job.end.linger)) return mistake;
  return seconds("--grace", line.grace_seconds, options.job.end.grace);
}

std::optional<std::string> convert(const RunLine& line, RunOnMachines& options) {
  if (line.group.empty()) return std::string("--group '': give the group's name");
  options.search.group = options.job.group = line.group;
  options.search.names = line.machines;
  options.job.every_machine = !line.machines.empty();
  if (!line.directory.empty() && line.directory.front() != '/')
    return fmt::format("--cwd {}: give an absolute path, the same on all machines", line.directory);
  options.directory = line.directory;
  options.job.prefix = !line.no_prefix;
  options.json = line.discovery.json;
  options.quiet = line.quiet;
  if (!options.json) options.job.start.terminal_columns = static_cast<std::uint32_t>(terminal_columns().value_or(0));
  // A program that only looks leaves to those that are up the datagrams that are sent to this machine alone.
  options.search.datagrams.hears_shared_port = false;
  if (auto mistake = convert_discovery_line(line.discovery, options.search.datagrams)) return mistake;
  if (auto mistake = convert_environment(line, options.job)) return mistake;
  if (auto mistake = convert_command(line, options)) return mistake;
  return convert_numbers(line, options);
}

}  // namespace

int run_run(Arguments arguments) {
  RunLine line;
  RunOnMachines options;
  CLI::App app("Runs PROGRAM on all machines that are up in a group:\n  ringlet run --group NAME [OPTIONS] -- PROGRAM [ARGS...]",
               "ringlet run");
  declare(app, line);
  if (const auto over = parse_program_line(app, arguments, "--group home -- /opt/train/train", line.command)) return *over;
  if (const auto mistake = convert(line, options)) return usage_error("run", *mistake);

  try {
    options.token = tokens::find_token(line.group, native::process_variable);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ringlet run: {}\n", error.what());
    return 1;
  }
  if (options.token.empty()) {
    fmt::print(
        stderr,
        "ringlet run: there is no token, and machines start programs only for those who have their group's; get that of group {0} from "
        "another machine with `ringlet pair --group {0} --join`, or make one with `ringlet token --save --group {0}`\n",
        line.group);
    return 1;
  }
  TokenAuthenticator randomness("");
  options.search.seed = random_number();
  options.job.start.job = random_number();
  options.job.start.token = tokens::make_token(randomness);
  options.job.version = RINGLET_VERSION;
  options.job.from = announced_name();
  return MachineRunner(std::move(options)).run();
}

}  // namespace ringlet::command
