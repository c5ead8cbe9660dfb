#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/launch/hosts/host_list.hpp"

namespace ringlet::launch {

/// How hosts are reached, and where `ringlet` stands on them.
struct SshOptions {
  std::vector<std::string> ssh{"ssh"};        // program and options
  std::optional<std::string> remote_ringlet;  // unset: `ringlet` in PATH there, else the path that it has here
};

/// The command that starts the deputy on a host: `helper_path` itself on this machine, ssh elsewhere. Nothing of it is secret.
std::vector<std::string> deputy_command(const Host& host, const SshOptions& options, const std::string& helper_path);

/// A sentence that says why ssh, or the program that it started, ended before the deputy answered, and what to do. `complaint` is its
/// stderr.
std::string explain_failure(const Host& host, const SshOptions& options, const std::string& helper_path, int exit_code,
                            const std::string& complaint);

/// "ssh: Timeout, server alpha not responding.": in ssh's own words, where it has any.
std::string explain_loss(const Host& host, int exit_code, const std::string& complaint);

}  // namespace ringlet::launch
