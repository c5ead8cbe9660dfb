#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/launch/command_process.hpp"

namespace ringlet::test {

/// Runs a shell command, and fails the test where the command fails.
void shell(const std::string& command);

/// A network namespace with eth0 and eth1. A process that does nothing else keeps it alive.
class NetworkHost {
 public:
  explicit NetworkHost(int number);
  NetworkHost(const NetworkHost&) = delete;
  NetworkHost& operator=(const NetworkHost&) = delete;
  ~NetworkHost();

  /// Returns the address of eth0, such as "10.77.0.1", or of eth1, which begins with 10.78.
  std::string address(int interface = 0) const;
  std::string name() const { return "host" + std::to_string(number_); }
  /// Runs `ip ARGUMENTS` on this host.
  void ip(const std::string& arguments) const { command("ip " + arguments); }
  /// Runs any shell command on this host.
  void command(const std::string& text) const;
  /// Runs `ringlet ARGUMENTS` on this host, with these variables in its environment. Its configuration is the host's own, unless
  /// XDG_CONFIG_HOME is among them.
  std::unique_ptr<CommandProcess> run(std::vector<std::string> arguments,
                                      std::vector<std::pair<std::string, std::string>> variables = {}) const;
  /// Runs `task` on a thread in this host's namespace, to its end.
  void within(const std::function<void()>& task) const;
  /// Moves this thread, and the threads and processes that it starts from now on, to this host. Returns whether it could.
  bool enter() const;
  /// Returns what a shell command must begin with to run on this host.
  std::string enter_line() const;

 private:
  int number_;
  TemporaryDirectory config_home_;
  pid_t keeper_ = -1;
  int namespace_ = -1;
};

/// Hosts that two bridges join, one the eth0 of all hosts and one the eth1. Their namespaces vanish with this process.
class NetworkOfHosts {
 public:
  /// Returns why this system forbids networks; nothing where it allows them. Moves this process into a namespace of its own, once.
  static std::optional<std::string> enter();

  explicit NetworkOfHosts(int hosts);
  ~NetworkOfHosts();

  const NetworkHost& host(int index) const { return *hosts_.at(static_cast<std::size_t>(index)); }
  const NetworkHost& add_host();
  /// From now on the bridges pass no multicast, as some access points do to keep their clients apart.
  void block_multicast();
  /// From now on the bridges pass nothing at all between hosts, as some access points do.
  void isolate();

 private:
  void set_ports(const std::string& option);

  std::vector<std::unique_ptr<NetworkHost>> hosts_;
};

}  // namespace ringlet::test
