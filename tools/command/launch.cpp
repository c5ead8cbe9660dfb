#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "native/setting.hpp"
#include "tools/command/launch_hosts.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/launch/launcher.hpp"

namespace ringlet::command {

namespace {

constexpr char kLaunchFooter[] = R"(Example:
  ringlet launch -n 4 -- ./train --epochs 3
  ringlet launch --hosts alpha,user@beta,gamma:2 --cwd /srv/model -- ./train
  ringlet launch --hostfile hosts.json -- ./train
  ringlet launch --elastic 2:8 -n 4 -- ./train
  ringlet launch -n 4 --trace trace.json -- ./train

Each rank gets RINGLET_RANK, RINGLET_WORLD_SIZE and RINGLET_COORDINATOR; ringlet::init() needs nothing else. For torch.distributed
it gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and on a terminal
RINGLET_TERMINAL_COLUMNS, the width that is left for a rank's own progress bar. On one machine the ranks get a RINGLET_TOKEN of their own unless
you set one, so that the machine's other users stay out, and they encrypt nothing unless RINGLET_ENCRYPT is on.

With --hosts or --hostfile, -n is the number of ranks on each host that has none of its own (1). Rank 0 is on the first host. Each host needs
PROGRAM, at the same path, and `ringlet`; ssh must log in there without asking. This machine itself (localhost, its name, an address of its own)
needs no ssh. First all hosts are reached, then all ranks start, in --cwd, else in the directory of this name where it exists, else in the
login's own. RINGLET_ variables of this shell are theirs, too, and --env for all else. The ranks share RINGLET_TOKEN, or a fresh one that nobody
sees. Whatever ends the launcher ends the ranks on all hosts; so does its silence of a minute.

A hostfile is one of these; all but "ssh" may be left out, and the first of "ips" is how the others reach the host:
  Ringlet's  [{"ssh": "alpha", "ips": ["10.0.0.7"], "slots": 2, "env": {"K": "V"}, "cwd": "/srv"}, {"ssh": "user@beta"}]
  MLX's      {"backend": "ring", "envs": ["K=V"], "hosts": [{"ssh": "alpha", "ips": ["10.0.0.7"]}, {"ssh": "beta", "ips": []}]}
  lines      alpha slots=2

With --elastic MIN:MAX a rank that fails is started again after 1 s, twice as long after each further failure (30 s at most), and joins those that live.
If none does, all start anew. The job goes on while MIN ranks run or will, and has come to its end when one exits with 0. While fewer than MIN are
in the group, the others wait (PROGRAM gets RINGLET_MIN_RANKS), for --min-wait seconds at most. The last line says what became of each rank, and how
often it was started again.

With --trace each rank writes into a file without a name in its machine's TMPDIR (256 MiB at most, or RINGLET_TRACE_MIB). When it has ended, its
machine sends that here, and at the end FILE is made of all, on one clock; Ctrl-C meanwhile leaves out what has not come. `ringlet trace summary FILE`
sums it up.

Exit codes: 0 if all ranks exited with 0 (with --elastic: if one did), else that of the first rank that failed for good (128 + signal if a signal killed it);
126 or 127 if PROGRAM cannot be run, 128 + signal after SIGINT or SIGTERM, 2 for a mistake on the command line or in the hostfile,
1 if a host cannot be used or is lost.)";

std::optional<std::string> convert(LaunchLine& line, const HostsLine& hosts, std::optional<int> ranks, launch::HostsPlan& plan) {
  if (auto mistake = convert_hosts_line(hosts, ranks, plan)) return mistake;
  RankBounds bounds;
  if (auto mistake = convert_elastic(line, bounds)) return mistake;
  if (!hosts.used()) {
    if (!ranks && line.elastic && !line.elastic->empty()) ranks = bounds.most;
    if (!ranks) return "--ranks is required: how many ranks to start, as in -n 4; or name machines with --hosts";
    line.options.world_size = *ranks;
    if (auto mistake = check_ranks("-n", *ranks)) return mistake;
    if (auto mistake = check_bounds(line, bounds, line.options.world_size)) return mistake;
    return convert_launch_line(line);
  }
  line.options.world_size = 0;
  for (const launch::Host& host : plan.hosts) line.options.world_size += *host.slots;
  if (auto mistake = check_bounds(line, bounds, line.options.world_size)) return mistake;
  if (auto mistake = convert_launch_line(line)) return mistake;
  return find_secret("launch", line.options);
}

bool is_set(const job::StartRanks& start, std::string_view name) {
  const bool by_option =
      std::any_of(start.environment.begin(), start.environment.end(), [&](const job::Variable& one) { return one.name == name; });
  return by_option || !native::process_variable(std::string(name)).value_or("").empty();
}

/// Every user of this machine can dial its loopback, so the ranks have a token that no other user knows. What they send does not leave the
/// machine, and is encrypted only where that is asked for.
void give_token(job::StartRanks& start) {
  if (is_set(start, "RINGLET_TOKEN") || is_set(start, "RINGLET_TOKEN_FILE")) return;
  start.token = fresh_token();
  if (!is_set(start, "RINGLET_ENCRYPT")) start.environment.push_back({"RINGLET_ENCRYPT", "off"});
}

}  // namespace

int run_launch(Arguments arguments) {
  LaunchLine line;
  HostsLine hosts;
  std::optional<int> ranks;
  CLI::App app(
      "Runs PROGRAM as the ranks of one group, on this machine or on several over ssh:\n  ringlet launch -n N [OPTIONS] -- PROGRAM "
      "[ARGS...]\n"
      "  ringlet launch --hosts A,B,C [OPTIONS] -- PROGRAM [ARGS...]",
      "ringlet launch");
  app.footer(kLaunchFooter);
  app.add_option("-n,--ranks", ranks, "How many ranks to start; with hosts: on each");
  declare_hosts_options(app, hosts);
  declare_launch_options(app, line);
  declare_elastic_option(app, line);
  if (const auto over = parse_program_line(app, arguments, "-n 4 -- ./train", line)) return *over;
  launch::HostsPlan plan;
  if (const auto mistake = convert(line, hosts, ranks, plan)) return usage_error("launch", *mistake);
  if (!hosts.used()) {
    give_token(line.options.job.start);
    return run_launch_line("launch", line, [&] { return launch::launch(line.options); });
  }
  plan.environment = shared_variables();
  return run_launch_line("launch", line, [&] { return launch::launch_on(plan, line.options); });
}

}  // namespace ringlet::command
