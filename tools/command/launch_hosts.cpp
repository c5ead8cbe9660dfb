#include "tools/command/launch_hosts.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "native/setting.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/rank_environment.hpp"

extern char** environ;

namespace ringlet::command {

namespace {

std::optional<std::string> convert_coordinator(const std::string& text, launch::HostsPlan& plan) {
  for (const std::string& form : {text, text + ":0", "[" + text + "]:0"})
    if (const auto address = parse_address(form); address.ok()) {
      plan.coordinator = address.value();
      return std::nullopt;
    }
  return fmt::format("--coordinator {}: write HOST or HOST:PORT, an IPv6 address with a port in brackets", text);
}

}  // namespace

void declare_hosts_options(CLI::App& app, HostsLine& line) {
  app.add_option("--hosts", line.hosts, "Machines to start on over ssh, by commas: a,user@b,c:2 (two ranks on c)")->type_name("LIST");
  app.add_option("--hostfile", line.hostfile, "The same from a file: JSON of Ringlet or MLX, or a host per line with slots=2 behind it")
      ->type_name("FILE");
  app.add_option("--coordinator", line.coordinator, "How the others reach the first host, where rank 0 runs; found out if not given")
      ->type_name("HOST[:PORT]");
  app.add_option("--ssh", line.ssh, "The ssh command with its options, as in --ssh \"ssh -p 2222 -F file\"")->type_name("COMMAND");
  app.add_option("--remote-ringlet", line.remote_ringlet, "Where `ringlet` is on the hosts; otherwise in PATH, else where it is here")
      ->type_name("PATH");
}

std::optional<std::string> convert_hosts_line(const HostsLine& line, std::optional<int> ranks_per_host, launch::HostsPlan& plan) {
  if (line.hosts && line.hostfile) return "--hosts and --hostfile are both given; keep one";
  if (!line.used()) {
    for (const auto& [name, value] :
         {std::pair{"--coordinator", line.coordinator}, {"--ssh", line.ssh}, {"--remote-ringlet", line.remote_ringlet}})
      if (value) return fmt::format("{} {}: it is for launches on several machines; name them with --hosts or --hostfile", name, *value);
    return std::nullopt;
  }
  if (auto mistake = check_ranks("-n", ranks_per_host.value_or(1))) return mistake;
  try {
    plan.hosts = line.hosts ? launch::parse_host_list(*line.hosts) : launch::read_hostfile(*line.hostfile);
  } catch (const launch::LaunchError& error) {
    return error.what();
  }
  int total = 0;
  for (launch::Host& host : plan.hosts) {
    if (!host.slots) host.slots = ranks_per_host.value_or(1);
    total += *host.slots;
  }
  if (total > launch::kMaxWorldSize)
    return fmt::format("{} ranks on all hosts together; there may be at most {}", total, launch::kMaxWorldSize);
  if (line.ssh) plan.ssh.ssh = CLI::detail::split_up(*line.ssh);
  if (plan.ssh.ssh.empty()) return "--ssh is empty; give the ssh command with its options";
  plan.ssh.remote_ringlet = line.remote_ringlet;
  const auto ports = native::ports_setting(native::process_variable);
  if (!ports.ok()) return ports.status().text();
  plan.ports = ports.value();
  return line.coordinator ? convert_coordinator(*line.coordinator, plan) : std::nullopt;
}

std::vector<job::Variable> shared_variables() {
  constexpr std::array<std::string_view, 3> kNotShared{"RINGLET_TOKEN", "RINGLET_TOKEN_FILE", "RINGLET_ADVERTISE"};
  std::vector<job::Variable> shared{{"RINGLET_TOKEN", choose_token()}};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    auto variable = launch::parse_variable(*entry);
    if (!variable || variable->name.rfind("RINGLET_", 0) != 0 || launch::is_reserved_variable(variable->name)) continue;
    if (std::find(kNotShared.begin(), kNotShared.end(), variable->name) == kNotShared.end()) shared.push_back(std::move(*variable));
  }
  return shared;
}

}  // namespace ringlet::command
