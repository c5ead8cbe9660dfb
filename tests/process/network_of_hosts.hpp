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

/// Runs a shell command; fails the test where that fails.
void shell(const std::string& command);

/// A network namespace of its own, with eth0 and eth1, kept by a process that does nothing else.
class NetworkHost {
 public:
  explicit NetworkHost(int number);
  NetworkHost(const NetworkHost&) = delete;
  NetworkHost& operator=(const NetworkHost&) = delete;
  ~NetworkHost();

  /// "10.77.0.1": of eth0; eth1's begins with 10.78.
  std::string address(int interface = 0) const;
  std::string name() const { return "host" + std::to_string(number_); }
  /// Runs `ip ARGUMENTS` there.
  void ip(const std::string& arguments) const { command("ip " + arguments); }
  /// Runs any shell command there.
  void command(const std::string& text) const;
  /// Runs `ringlet ARGUMENTS` there, with these variables in its environment.
  std::unique_ptr<CommandProcess> run(std::vector<std::string> arguments,
                                      std::vector<std::pair<std::string, std::string>> variables = {}) const;
  /// Runs `task` on a thread that is there, to its end.
  void within(const std::function<void()>& task) const;
  /// What to put before a command for a shell, so that it runs there.
  std::string enter_line() const;

 private:
  int number_;
  pid_t keeper_ = -1;
  int namespace_ = -1;
};

/// Hosts that two bridges join, eth0 by one and eth1 by the other, in namespaces that vanish with this process.
class NetworkOfHosts {
 public:
  /// Why this system forbids it; nothing where it works. Moves this process into a namespace of its own, once.
  static std::optional<std::string> enter();

  explicit NetworkOfHosts(int hosts);
  ~NetworkOfHosts();

  const NetworkHost& host(int index) const { return *hosts_.at(static_cast<std::size_t>(index)); }
  const NetworkHost& add_host();
  /// From now on the bridges pass no multicast, as access points do that keep their clients apart.
  void block_multicast();
  /// From now on the bridges pass nothing at all between hosts, as access points may.
  void isolate();

 private:
  void set_ports(const std::string& option);

  std::vector<std::unique_ptr<NetworkHost>> hosts_;
};

}  // namespace ringlet::test
