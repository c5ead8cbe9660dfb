#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command/launch_line.hpp"
#include "tools/launch/hosts/hosts_launcher.hpp"

namespace ringlet::command {

/// The options of `ringlet launch` that concern other machines, as they stand on the command line.
struct HostsLine {
  std::optional<std::string> hosts, hostfile, coordinator, ssh, remote_ringlet;

  bool used() const noexcept { return hosts || hostfile; }
};

void declare_hosts_options(CLI::App& app, HostsLine& line);

/// Brings the values into the launcher's form, with `ranks_per_host` where a host has no number of its own; returns a sentence where one is
/// wrong. Reads the hostfile.
std::optional<std::string> convert_hosts_line(const HostsLine& line, std::optional<int> ranks_per_host, launch::HostsPlan& plan);

/// The variables that the ranks on all machines get from this process' environment: those that begin with RINGLET_, except for those of one
/// machine alone, and the token, or a fresh one. Throws where the token cannot be read.
std::vector<job::Variable> shared_variables();

}  // namespace ringlet::command
