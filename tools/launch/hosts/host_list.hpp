#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/job/messages.hpp"

namespace ringlet::launch {

inline constexpr int kMaxHosts = 256;
inline constexpr int kMaxWorldSize = job::kMaxWorldSize;

/// One machine of a launch, as a hostfile or --hosts describes it.
struct Host {
  std::string ssh;               // its name for ssh: a name, an address, or user@ before one
  std::vector<std::string> ips;  // addresses by which the others reach it, the best first
  std::optional<int> slots;      // ranks to start there
  std::vector<job::Variable> environment;
  std::string directory;  // in which its ranks run; empty: as the launch says

  /// `ssh` without the user.
  std::string name() const { return ssh.substr(ssh.find('@') + 1); }
};

/// "a,user@b:2,[::1]:3": the number behind a colon is that of the ranks. Throws `LaunchError` that names the entry.
std::vector<Host> parse_host_list(std::string_view text);

/// A hostfile: Ringlet's own or MLX's JSON (a list of {"ssh", "ips", ...}, or an object with "hosts" and "envs"), or a host per line with
/// `slots=2` behind it. Throws `LaunchError` that names file and line or entry.
std::vector<Host> parse_hostfile(const std::string& path, const std::string& text);
/// Reads the file first.
std::vector<Host> read_hostfile(const std::string& path);

/// This machine's own name; empty where it has none.
std::string own_host_name();

/// Whether `host` is this machine, by a loopback or interface address or by its own name, and no other user of it.
bool is_this_machine(const Host& host);

/// Checks an entry of either form; throws `LaunchError` that begins with `where`.
void check_host(const Host& host, const std::string& where);

}  // namespace ringlet::launch
