#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/command/discovery_line.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/machine_watch.hpp"
#include "tools/command/this_machine.hpp"

namespace ringlet::command {

namespace {

constexpr char kDiscoverFooter[] = R"(Example:
  ringlet discover --once --json

Machines are seen while `ringlet up` runs on them. Without --once the list follows until Ctrl-C: as a table on a terminal, else as a line for each
change. Where a network blocks multicast, name a machine with --peer, which tells of those that it hears, as `ringlet up` on this machine does.
What is shown is what machines say of themselves; nothing of it is proved.
Exit codes: 0 someone was found, or ended by a signal; 3 nobody was found (--once); 1 it cannot listen; 2 a mistake on the command line.)";

}  // namespace

int run_discover(Arguments arguments) {
  DiscoveryLine line;
  std::optional<std::string> group;
  bool once = false;
  double wait_seconds = 2;
  CLI::App app("Shows the machines on the local network that Ringlet is up on.", "ringlet discover");
  app.footer(kDiscoverFooter);
  app.add_flag("--once", once, "Look for a while, print what is there, and end");
  app.add_option("--wait", wait_seconds, "How many seconds to look with --once")->capture_default_str();
  app.add_option("--group", group, "Show only the machines of this group")->type_name("NAME");
  declare_discovery_options(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;

  WatchOptions options;
  options.message_prefix = "ringlet discover";
  options.json = line.json;
  options.group = group;
  // A datagram to this machine alone reaches only one of its programs, so `discover` leaves the port to programs that announce themselves.
  options.datagrams.hears_shared_port = false;
  Duration wait;
  std::optional<std::string> mistake = convert_discovery_line(line, options.datagrams);
  if (!mistake) mistake = convert_seconds("--wait", wait_seconds, wait);
  if (!mistake && group) mistake = find_group_mistake(*group);
  if (mistake) return usage_error("discover", *mistake);
  ask_this_machine(options.datagrams);
  if (once) options.once = wait;
  return MachineWatch(std::move(options)).run();
}

}  // namespace ringlet::command
