#include <fmt/format.h>
#include <unistd.h>
#include <uv.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "native/environment.hpp"
#include "tools/command/discovery_line.hpp"
#include "tools/command/machine_watch.hpp"
#include "tools/command/this_machine.hpp"
#include "tools/launch/internal_commands.hpp"
#include "tools/launch/standard_error.hpp"
#include "tools/tokens/group_token.hpp"

namespace ringlet::command {

namespace {

constexpr char kUpFooter[] = R"(Example:
  ringlet up --group home --allow /opt/train/train

Shows the other machines that are up in the group as they come and go, and the jobs that run here: as a table on a terminal, else as a line for
each change. Tells the others when it ends. Everyone on the network can see what `ringlet discover` shows of this machine; the group's token is
no part of it.
With the group's token (RINGLET_TOKEN, RINGLET_TOKEN_FILE, or the one that `ringlet pair` or `ringlet token --save` has saved for the group)
it also starts programs for those who have the token too and use `ringlet run`: as this user, and nothing but what --allow or the list of
--allow-file names. Nothing is allowed by default. A path alone allows all arguments: allow only programs that may be given any, so no shell
and no interpreter. After a path may follow what its arguments have to be, a pattern for each: * stands for any text, but for no slash and no dot
at its beginning, ? for one such character (or a space), and ... at the end for any further arguments:
  --allow '/opt/train/train --epochs * --data /srv/photos/*'
The list has such a line for each, lines with # are comments; it is read at each request. A program that others could change is not
started; root may, and the members of a group for whom its files are writable. A link that --allow names is started by its own name, as the
Python of a virtual environment needs it, and no more once it leads elsewhere than when this command was started. Of environment variables
others may set for a program those of numbers of threads (OMP_NUM_THREADS and the like), Ringlet's own limits (RINGLET_TIMEOUT_MS and the
like), and what --allow-env names. Without a token it only shows this machine.
Machines prove their keys beside the token. One that is not known is shown with its fingerprint when it first asks, and remembered; once
`ringlet machines remove` has removed one here, it and all unknown ones are refused, until they are paired or added.
A firewall has to let in UDP port 47174 and TCP ports 47174 to 47238 (`ringlet doctor` tries them, and says what to type).
With a token, and where the system has a DNS-SD responder (Bonjour, Avahi), browsers of services see it as _ringlet._tcp, too.
Exit codes: 0 ended by a signal; 1 it cannot listen, or the token cannot be read; 2 a mistake on the command line.)";

struct AgentLine {
  std::vector<std::string> allowed, variables;
  std::string allow_file = agent::default_allow_file();
  const CLI::Option* allow_file_option = nullptr;
  std::string listen;
  std::string ports = to_string(agent::kRankPorts);
  int max_ranks = static_cast<int>(uv_available_parallelism());
};

void declare(CLI::App& app, AgentLine& line) {
  app.add_option("--allow", line.allowed, "A program that others may start, or a directory whose programs they may; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("PATH [PATTERNS]");
  app.add_option("--allow-env", line.variables,
                 "A variable that others may set for it; a * at the end stands for any ending; may be repeated")
      ->expected(1)
      ->take_all()
      ->type_name("NAME");
  line.allow_file_option =
      app.add_option("--allow-file", line.allow_file, "A list of more of them")->capture_default_str()->type_name("FILE");
  app.add_option("--listen", line.listen, "HOST:PORT to take connections at; else all interfaces and TCP port 47174, if it is free")
      ->type_name("HOST:PORT");
  app.add_option("--ports", line.ports, "TCP ports at which the ranks listen that it starts; any: whichever are free")
      ->capture_default_str()
      ->type_name("FIRST-LAST");
  app.add_option("--max-ranks", line.max_ranks, "How many ranks may run here at a time; as many as there are cores if not said")
      ->type_name("N");
}

std::optional<std::string> convert(const AgentLine& line, agent::AgentOptions& options) {
  if (line.max_ranks < 1 || line.max_ranks > static_cast<int>(job::kMaxRanksPerMachine))
    return fmt::format("--max-ranks {}: give a number from 1 to {}", line.max_ranks, job::kMaxRanksPerMachine);
  options.max_ranks = line.max_ranks;
  options.allowed = agent::AllowList(line.allowed, line.allow_file);
  if (auto mistake = options.allowed.find_mistake()) return mistake;
  options.variables = agent::AllowedVariables(line.variables);
  if (auto mistake = options.variables.find_mistake()) return mistake;
  const auto ports = parse_port_range(line.ports);
  if (!ports) return fmt::format("--ports {}: write FIRST-LAST, such as {}, or any", line.ports, to_string(agent::kRankPorts));
  options.ports = *ports;
  if (line.listen.empty()) return std::nullopt;
  auto address = parse_address(line.listen);
  if (!address.ok()) return fmt::format("--listen {}", address.status().text());
  options.listen = std::move(address).value();
  return std::nullopt;
}

}  // namespace

int run_up(Arguments arguments) {
  DiscoveryLine line;
  discovery::Profile profile;
  profile.name = announced_name();
  profile.version = RINGLET_VERSION;
  AgentLine agent_line;
  CLI::App app("Makes this machine known to others on the local network, as one that is up in a group, and starts programs for it.",
               "ringlet up");
  app.footer(kUpFooter);
  app.add_option("--group", profile.group, "The group's name")->required()->type_name("NAME");
  app.add_option("--name", profile.name, "What to call this machine")->capture_default_str()->type_name("NAME");
  declare(app, agent_line);
  bool hidden = false;
  app.add_flag("--no-dns-sd", hidden, "Do not have the system's DNS-SD responder (Bonjour, Avahi) tell of this machine, too");
  declare_discovery_options(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;

  WatchOptions options;
  options.message_prefix = "ringlet up";
  options.json = line.json;
  options.dns_sd = !hidden;
  options.group = profile.group;
  std::optional<std::string> mistake = convert_discovery_line(line, options.datagrams);
  if (!mistake) mistake = find_group_mistake(profile.group);
  if (!mistake) mistake = find_name_mistake("--name", profile.name);
  agent::AgentOptions agent;
  if (!mistake) mistake = convert(agent_line, agent);
  if (mistake) return usage_error("up", *mistake);
  if (agent_line.allow_file_option->count() > 0 && ::access(agent_line.allow_file.c_str(), R_OK) != 0)
    launch::print_error("ringlet up: --allow-file {} cannot be read as yet ({}); nothing of it is allowed until then\n",
                        agent_line.allow_file, std::strerror(errno));
  agent.token = tokens::find_token(profile.group, native::process_variable);
  if (!agent.token.empty()) {
    // Ranks get the token of their job, and must not get this one.
    ::unsetenv("RINGLET_TOKEN");
    ::unsetenv("RINGLET_TOKEN_FILE");
    agent.name = profile.name;
    agent.group = profile.group;
    agent.version = profile.version;
    agent.helper_path = launch::own_path();
    agent.key = machines::MachineKey::load(native::process_variable);
    agent.machines.emplace(profile.group, agent.key->public_key(), native::process_variable);
    options.agent = std::move(agent);
  }
  options.profile = std::move(profile);
  return MachineWatch(std::move(options)).run();
}

}  // namespace ringlet::command
