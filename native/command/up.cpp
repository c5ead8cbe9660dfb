#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "native/command/discovery_line.hpp"
#include "native/command/machine_watch.hpp"
#include "native/command/this_machine.hpp"

namespace ringlet::command {

namespace {

constexpr char kFooter[] = R"(Example:
  ringlet up --group home

Shows the other machines that are up in the group as they come and go: as a table on a terminal, else as a line for each change. Tells the others
when it ends. Everyone on the network can see what `ringlet discover` shows of this machine; the group's token is no part of it.
Exit codes: 0 ended by a signal; 1 it cannot listen; 2 a mistake on the command line.)";

/// Whether `text` can be announced as it stands.
std::optional<std::string> find_mistake(const char* option, const std::string& text) {
  discovery::Profile profile;
  profile.name = text;
  if (!text.empty() && discovery::limited(profile).name == text) return std::nullopt;
  return fmt::format("{} '{}': give 1 to {} bytes of UTF-8 without control characters", option, discovery::limited(profile).name,
                     discovery::kMaxNameBytes);
}

}  // namespace

int run_up(Arguments arguments) {
  DiscoveryLine line;
  discovery::Profile profile;
  profile.name = machine_name();
  profile.version = RINGLET_VERSION;
  CLI::App app("Makes this machine known to others on the local network, as one that is up in a group.", "ringlet up");
  app.footer(kFooter);
  app.add_option("--group", profile.group, "The group's name")->required()->type_name("NAME");
  app.add_option("--name", profile.name, "What to call this machine")->capture_default_str()->type_name("NAME");
  declare_discovery_options(app, line);
  if (const auto over = parse_options(app, arguments)) return *over;

  WatchOptions options;
  options.teller = "ringlet up";
  options.json = line.json;
  options.group = profile.group;
  std::optional<std::string> mistake = convert_discovery_line(line, options.datagrams);
  if (!mistake) mistake = find_mistake("--group", profile.group);
  if (!mistake) mistake = find_mistake("--name", profile.name);
  if (mistake) return usage_error("up", *mistake);
  options.profile = std::move(profile);
  return MachineWatch(std::move(options)).run();
}

}  // namespace ringlet::command
