#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/command/launch_line.hpp"
#include "tools/launch/hosts/hosts_launcher.hpp"

namespace ringlet::command {

/// What of `ringlet launch` concerns other machines, as it stands on the command line.
struct HostsLine {
  std::optional<std::string> hosts, hostfile, coordinator, ssh, remote_ringlet;

  bool used() const noexcept { return hosts || hostfile; }
};

void declare_hosts_options(CLI::App& app, HostsLine& line);

/// Brings the values into the launcher's form, with `ranks_per_host` where a host has no number of its own; a sentence where one cannot be.
/// Reads the hostfile.
std::optional<std::string> convert_hosts_line(const HostsLine& line, std::optional<int> ranks_per_host, launch::HostsPlan& plan);

/// What the ranks on all machines get from this process' environment: its RINGLET_ variables, but those of one machine alone, and the
/// token, or a fresh one. Throws where the token cannot be read.
std::vector<std::pair<std::string, std::string>> shared_variables();

/// Runs it to its end, and returns the exit code.
int launch_on_hosts(LaunchLine line, launch::HostsPlan plan);

}  // namespace ringlet::command
