#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "native/environment.hpp"
#include "tools/agent/agent.hpp"
#include "tools/command/discovery_line.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/run_on_machines.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kRunFooter[] = R"(Example:
  ringlet run --group home -- /opt/train/train --epochs 3

Starts PROGRAM as ranks of one group on every machine where `ringlet up --group NAME` runs with the same token (RINGLET_TOKEN,
RINGLET_TOKEN_FILE, or the one that `ringlet pair` or `ringlet token --save` has saved for the group), one rank on each unless -n or
--per-machine says otherwise. Rank 0 is on the first machine by name. Each machine starts only what its owner has allowed there (`ringlet up
--allow`), looked up by the same absolute path, or by that of --program. Arguments are not restricted: allow only programs that may be given
any. --env sets no variable that makes programs load other code (LD_*, DYLD_*, PATH, PYTHON* and the like). The ranks' standard input is empty.
This program says that it is there every 2 s; after 20 s of silence (Ctrl-Z, too), when it ends or the connection breaks, the machines end the
job.
Exit codes: those of `ringlet launch`: 0 if all ranks exited with 0, else that of the first rank that failed (128 + signal if a signal killed
it); 126 or 127 if PROGRAM is not allowed or cannot be run, 128 + signal after SIGINT or SIGTERM, 1 if a machine is lost, 2 for a mistake on the
command line; and 3 if the machines are not found, or two have a name that is given here.)";

constexpr std::size_t kMaxCommandBytes = 512 * 1024;

struct RunLine : JobLine {
  DiscoveryLine discovery;
  std::string group;
  std::optional<int> total, per_machine;
  std::vector<std::string> machines, programs;
  std::string directory;
  double wait_seconds = 5;
  int at_least = 1;
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
  app.add_option("--wait", line.wait_seconds, "How many seconds to wait for the machines at most")->capture_default_str();
  app.add_option("--at-least", line.at_least, "How many machines must take part")->capture_default_str();
  declare_job_options(app, line);
  declare_discovery_options(app, line.discovery);
}

std::optional<std::string> convert_command(const RunLine& line, RunOnMachines& options) {
  if (line.command.front().find('/') == std::string::npos)
    return fmt::format("'{}': give the program's path; other machines do not look it up in this one's PATH", line.command.front());
  options.program = std::filesystem::absolute(line.command.front()).lexically_normal().string();
  if (options.job.start.arguments.size() > agent::kMaxArguments)
    return fmt::format("{} arguments; at most {} can be given", options.job.start.arguments.size(), agent::kMaxArguments);
  if (options.job.start.environment.size() > agent::kMaxVariables)
    return fmt::format("--env: {} variables; at most {} can be given", options.job.start.environment.size(), agent::kMaxVariables);
  std::size_t bytes = 0;
  for (const std::string& argument : options.job.start.arguments) bytes += argument.size();
  for (const job::Variable& variable : options.job.start.environment) bytes += variable.name.size() + variable.value.size();
  if (bytes > kMaxCommandBytes)
    return fmt::format("arguments and variables have {} bytes together; at most {} can be given", bytes, kMaxCommandBytes);
  for (const std::string& entry : line.programs) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.compare(equals + 1, 1, "/") != 0)
      return fmt::format("--program {}: write it as MACHINE=PATH, with an absolute path", entry);
    const std::string machine = entry.substr(0, equals);
    if (!line.machines.empty() && std::find(line.machines.begin(), line.machines.end(), machine) == line.machines.end())
      return fmt::format("--program {}: --machines does not name {}", entry, machine);
    options.programs.emplace(machine, entry.substr(equals + 1));
  }
  return std::nullopt;
}

std::optional<std::string> convert_numbers(const RunLine& line, RunOnMachines& options) {
  if (line.total && line.per_machine) return std::string("-n and --per-machine: give one of the two");
  if (line.total && (*line.total < 1 || *line.total > static_cast<int>(job::kMaxWorldSize)))
    return fmt::format("-n {}: the number of ranks must be from 1 to {}", *line.total, job::kMaxWorldSize);
  const int per_machine = line.per_machine.value_or(1);
  if (auto mistake = check_ranks("--per-machine", per_machine)) return mistake;
  if (line.at_least < 1) return fmt::format("--at-least {}: at least 1 machine must take part", line.at_least);
  options.job.wish = {line.total, per_machine};
  options.job.at_least = options.search.at_least = line.at_least;
  return convert_seconds("--wait", line.wait_seconds, options.search.wait);
}

std::optional<std::string> convert(const RunLine& line, RunOnMachines& options) {
  if (line.group.empty()) return std::string("--group '': give the group's name");
  if (std::find(line.machines.begin(), line.machines.end(), "") != line.machines.end())
    return std::string("--machines: a name is empty; give the machines' names with commas between");
  options.search.group = options.job.group = line.group;
  options.search.names = line.machines;
  options.job.every_machine = !line.machines.empty();
  if (!line.directory.empty() && line.directory.front() != '/')
    return fmt::format("--cwd {}: give an absolute path, the same on all machines", line.directory);
  options.directory = line.directory;
  options.json = line.discovery.json;
  options.quiet = line.quiet;
  if (!options.json) options.job.start.terminal_columns = terminal_columns();
  // A program that only looks leaves to those that are up the datagrams that are sent to this machine alone.
  options.search.datagrams.hears_shared_port = false;
  if (auto mistake = convert_discovery_line(line.discovery, options.search.datagrams)) return mistake;
  if (auto mistake = convert_job_line(line, options.job)) return mistake;
  if (auto mistake = agent::find_forbidden(options.job.start.environment)) return mistake;
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
  if (const auto over = parse_program_line(app, arguments, "--group home -- /opt/train/train", line)) return *over;
  if (const auto mistake = convert(line, options)) return usage_error("run", *mistake);

  options.token = tokens::find_token(line.group, native::process_variable);
  if (options.token.empty())
    throw std::runtime_error(
        fmt::format("there is no token, and machines start programs only for those who have their group's; get that of group {0} from "
                    "another machine with `ringlet pair --group {0} --join`, or make one with `ringlet token --save --group {0}`",
                    line.group));
  options.search.seed = random_number();
  options.job.start.job = random_number();
  options.job.start.token = fresh_token();
  options.job.version = RINGLET_VERSION;
  options.job.from = announced_name();
  return MachineRunner(std::move(options)).run();
}

}  // namespace ringlet::command
