#pragma once

#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/network_of_hosts.hpp"

namespace ringlet::test {

using Process = std::unique_ptr<CommandProcess>;

inline constexpr char kToken[] = "a-token-that-only-the-tests-have";

inline bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

/// Three hosts on which agents are up that allow `allowed`. Jobs are run from one of them. Where multicast is blocked, the agents of the
/// others are told of that one alone.
struct Home {
  explicit Home(const std::vector<std::string>& allowed = {RINGLET_COLLECTIVE_LOOP}, bool multicast = true) {
    if (!multicast) network.block_multicast();
    for (int i = 0; i < 3; ++i) {
      std::vector<std::string> more;
      for (const std::string& path : allowed) more.insert(more.end(), {"--allow", path});
      if (!multicast && i > 0) more.insert(more.end(), {"--peer", network.host(0).address()});
      agents.push_back(up(i, more));
    }
    for (const Process& agent : agents) agent->wait_for_stdout("appeared in group home", 2);
    for (int i = 0; i < 3; ++i) introduce(network.host(i));
  }
  /// Makes the host known to all others, so that these do not tell of a first contact.
  void introduce(const NetworkHost& host) const {
    const nlohmann::json shown = nlohmann::json::parse(host.run({"machines", "--json"})->finish().out);
    const std::string key = shown["own"]["key"];
    for (int i = 0; i < 3; ++i)
      REQUIRE(network.host(i).run({"machines", "add", host.name(), key, "--group", "home"})->finish().exit_code == 0);
  }
  /// Starts an agent on this host.
  Process up(int host, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"up",           "--group", "home",        "--name", network.host(host).name(),
                                       "--allow-file", list(),    "--max-ranks", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return network.host(host).run(std::move(arguments), {{"RINGLET_TOKEN", kToken}});
  }
  std::string list() const { return directory.path() + "/allowed"; }
  Process run(const std::vector<std::string>& options, const std::vector<std::string>& command, const std::string& token = kToken,
              int host = 0) const {
    std::vector<std::string> arguments{"run", "--group", "home"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    Process process = network.host(host).run(std::move(arguments), {{"RINGLET_TOKEN", token}});
    process->close_stdin();
    return process;
  }
  /// Ends the agents, which must exit with 0 and leave no process behind.
  void end() {
    for (const Process& agent : agents) agent->send(SIGTERM);
    for (const Process& agent : agents) CHECK(agent->finish().exit_code == 0);
  }

  TemporaryDirectory directory;
  NetworkOfHosts network{3};
  std::vector<Process> agents;
};

}  // namespace ringlet::test
