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
#include "tools/launch/rank_environment.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kRunFooter[] = R"(Example:
  ringlet run --group home -- /opt/train/train --epochs 3
  ringlet run --group home --elastic 2:8 -- /opt/train/train --epochs 3
  ringlet run --group home --trace trace.json -- /opt/train/train --epochs 3

Starts PROGRAM as ranks of one group on every machine where `ringlet up --group NAME` runs with the same token (RINGLET_TOKEN,
RINGLET_TOKEN_FILE, or the one that `ringlet pair` or `ringlet token --save` has saved for the group), one rank on each unless -n or
--per-machine says otherwise. Rank 0 is on the first machine by name. Each machine starts only what its owner has allowed there (`ringlet up
--allow`), looked up by the same absolute path, or by that of --program, with arguments and variables of --env that the owner lets others give
(without asking: numbers of threads, such as OMP_NUM_THREADS, and limits of Ringlet's, such as RINGLET_TIMEOUT_MS; all others by `ringlet up
--allow-env`). The ranks' standard input is empty. With --trace each machine sends its ranks' traces when these have ended; that needs no leave,
and Ctrl-C meanwhile leaves out what has not come.
Each machine has to prove the key by which it is known (`ringlet machines`), else it takes no part; the key of one that is not known is shown and
remembered.
This program says that it is there every 2 s; after 20 s of silence (Ctrl-Z, too), when it ends or the connection breaks, the machines end the
job.
With --elastic MIN:MAX ranks that fail are started again where they ran, as `ringlet launch --help` says; those of a lost machine are gone. A machine
that comes up while the job runs gets --per-machine ranks, which join the others, until there are MAX. With fewer than MIN the others wait for one
that comes up, for --min-wait seconds at most; then the job ends.
Exit codes: those of `ringlet launch`: 0 if all ranks exited with 0 (with --elastic: if one did), else that of the first rank that failed for good
(128 + signal if a signal killed it);
126 or 127 if PROGRAM is not allowed or cannot be run, or if a machine is not trusted, 128 + signal after SIGINT or SIGTERM, 1 if a machine
is lost, 2 for a mistake on the command line; and 3 if the machines are not found, or two have a name that is given here.)";

constexpr std::size_t kMaxCommandBytes = 512 * 1024;
// Many round trips on a slow Wi-Fi link; a name that nobody stands behind costs each job as much.
constexpr Duration kStragglerTime = Duration::milliseconds(1'500);

struct RunLine : JobLine {
  DiscoveryLine discovery;
  RunOnMachines options;
  std::optional<int> per_machine;
  std::vector<std::string> programs;
  double wait_seconds = 5;
};

void declare(CLI::App& app, RunLine& line) {
  agent::SearchOptions& search = line.options.search;
  app.footer(kRunFooter);
  app.add_option("--group", search.group, "The group whose machines are to run it")->required()->type_name("NAME");
  app.add_option("--name", line.options.job.from, "What to call this machine where others show who has started a job")
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("-n,--ranks", line.options.job.wish.total, "How many ranks in all, spread evenly over the machines");
  app.add_option("--per-machine", line.per_machine, "How many ranks on each machine; 1 where neither is said");
  app.add_option("--machines", search.names, "Only these machines, by name with commas between; all must take part")
      ->delimiter(',')
      ->type_name("NAMES");
  app.add_option("--program", line.programs, "MACHINE=PATH: what PROGRAM is called on that machine; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--cwd", line.options.directory, "Directory in which the ranks run; else that in which `ringlet up` was started")
      ->type_name("DIR");
  app.add_option("--wait", line.wait_seconds, "How many seconds to wait for the machines at most")->capture_default_str();
  app.add_option("--at-least", search.at_least, "How many machines must take part")->capture_default_str();
  declare_job_options(app, line);
  declare_elastic_option(app, line);
  declare_discovery_options(app, line.discovery);
}

std::optional<std::string> convert_command(const RunLine& line, RunOnMachines& options) {
  if (line.command.front().find('/') == std::string::npos)
    return fmt::format("'{}': give the program's path; other machines do not look it up in this one's PATH", line.command.front());
  options.program = std::filesystem::absolute(line.command.front()).lexically_normal().string();
  std::size_t bytes = 0;
  for (const std::string& argument : options.job.start.arguments) bytes += argument.size();
  for (const job::Variable& variable : options.job.start.environment) bytes += variable.name.size() + variable.value.size();
  if (bytes > kMaxCommandBytes)
    return fmt::format("arguments and variables have {} bytes together; at most {} can be given", bytes, kMaxCommandBytes);
  for (const std::string& entry : line.programs) {
    const auto program = launch::parse_variable(entry);
    if (!program || !program->value.starts_with('/'))
      return fmt::format("--program {}: write it as MACHINE=PATH, with an absolute path", entry);
    const auto& names = options.search.names;
    if (!names.empty() && std::find(names.begin(), names.end(), program->name) == names.end())
      return fmt::format("--program {}: --machines does not name {}", entry, program->name);
    options.programs.emplace(program->name, program->value);
  }
  return std::nullopt;
}

std::optional<std::string> convert_numbers(const RunLine& line, RunOnMachines& options) {
  job::RankWish& wish = options.job.wish;
  if (wish.total && line.per_machine) return "-n and --per-machine: give one of the two";
  if (wish.total && (*wish.total < 1 || *wish.total > static_cast<int>(job::kMaxWorldSize)))
    return fmt::format("-n {}: the number of ranks must be from 1 to {}", *wish.total, job::kMaxWorldSize);
  wish.per_machine = line.per_machine.value_or(1);
  if (auto mistake = check_ranks("--per-machine", wish.per_machine)) return mistake;
  RankBounds bounds;
  if (auto mistake = convert_elastic(line, bounds)) return mistake;
  if (wish.total)
    if (auto mistake = check_bounds(line, bounds, *wish.total)) return mistake;
  options.job.at_least = options.search.at_least;
  if (options.search.at_least < 1) return fmt::format("--at-least {}: at least 1 machine must take part", options.search.at_least);
  return convert_seconds("--wait", line.wait_seconds, options.search.wait);
}

std::optional<std::string> convert(RunLine& line) {
  RunOnMachines& options = line.options;
  if (auto mistake = find_group_mistake(options.search.group)) return mistake;
  if (auto mistake = find_name_mistake("--name", options.job.from)) return mistake;
  const auto& names = options.search.names;
  if (std::find(names.begin(), names.end(), "") != names.end())
    return "--machines: a name is empty; give the machines' names with commas between";
  options.job.group = options.search.group;
  options.job.every_machine = !options.search.names.empty();
  options.job.straggler_time = kStragglerTime;
  if (!options.directory.empty() && options.directory.front() != '/')
    return fmt::format("--cwd {}: give an absolute path, the same on all machines", options.directory);
  options.json = line.discovery.json;
  options.quiet = line.quiet;
  if (!options.json) options.job.start.terminal_columns = terminal_columns();
  // A program that only looks leaves to those that are up the datagrams that are sent to this machine alone.
  options.search.datagrams.hears_shared_port = false;
  if (auto mistake = convert_discovery_line(line.discovery, options.search.datagrams)) return mistake;
  ask_this_machine(options.search.datagrams);
  if (auto mistake = convert_job_line(line, options.job)) return mistake;
  options.trace_parts = std::move(line.trace_parts);
  if (options.job.end.elastic) options.job.end.elastic->may_grow = options.job.most.has_value();
  if (auto mistake = agent::find_mistake(options.job.start)) return mistake;
  if (auto mistake = convert_command(line, options)) return mistake;
  return convert_numbers(line, options);
}

}  // namespace

int run_run(Arguments arguments) {
  RunLine line;
  RunOnMachines& options = line.options;
  options.job.from = announced_name();
  CLI::App app("Runs PROGRAM on all machines that are up in a group:\n  ringlet run --group NAME [OPTIONS] -- PROGRAM [ARGS...]",
               "ringlet run");
  declare(app, line);
  if (const auto over = parse_program_line(app, arguments, "--group home -- /opt/train/train", line)) return *over;
  if (const auto mistake = convert(line)) return usage_error("run", *mistake);

  options.token = tokens::find_token(options.search.group, native::process_variable);
  if (options.token.empty())
    throw std::runtime_error(
        fmt::format("there is no token, and machines start programs only for those who have their group's; get that of group {0} from "
                    "another machine with `ringlet pair --group {0} --join`, or make one with `ringlet token --save --group {0}`",
                    options.search.group));
  options.search.seed = random_number();
  options.job.start.job = random_number();
  options.job.start.token = fresh_token();
  options.job.version = RINGLET_VERSION;
  const auto key = machines::MachineKey::load(native::process_variable);
  options.identity.emplace(key, options.job.from, options.job.version);
  options.machines.emplace(options.search.group, key.public_key(), native::process_variable);
  return MachineRunner(std::move(options)).run();
}

}  // namespace ringlet::command
