#pragma once

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process/network_of_hosts.hpp"

namespace ringlet::test {

using Json = nlohmann::json;
using Process = std::unique_ptr<CommandProcess>;

inline bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

/// A host with a home directory of its own.
class Machine {
 public:
  explicit Machine(const NetworkHost& host) : host_(host) {}

  Process start(std::vector<std::string> arguments) const { return host_.run(std::move(arguments), {{"XDG_CONFIG_HOME", home_.path()}}); }
  Outcome run(std::vector<std::string> arguments, const std::string& input = "") const {
    const Process process = start(std::move(arguments));
    process->write_stdin(input);
    process->close_stdin();
    return process->finish();
  }
  Process show_code(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"pair", "--group", "home", "--name", host_.name(), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(std::move(arguments));
  }
  Outcome join(const std::string& code, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"pair", "--group", "home", "--join", "--name", host_.name()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(std::move(arguments), code + "\n");
  }
  std::string token() const { return run({"token", "--show", "--group", "home"}).out; }
  const NetworkHost& host() const { return host_; }

 private:
  const NetworkHost& host_;
  TemporaryDirectory home_;
};

/// Returns what a host has printed about its n-th code, counted from 1.
inline Json wait_for_code(CommandProcess& host, int number) {
  host.wait_for_stdout("\"valid_seconds\"", number);
  std::istringstream lines(host.out());
  std::vector<Json> codes;
  for (std::string line; std::getline(lines, line);)
    if (auto json = Json::parse(line, nullptr, false); json.value("event", "") == "code") codes.push_back(std::move(json));
  return codes.at(static_cast<std::size_t>(number) - 1);
}

/// Returns where the machine that printed `shown` pairs, by its address on eth0.
inline std::string way_to(const Machine& machine, const Json& shown) {
  for (const auto& address : shown["addresses"])
    if (const auto text = address.get<std::string>(); text.rfind(machine.host().address() + ":", 0) == 0) return text;
  FAIL("it does not say where it pairs: " << shown);
  return {};
}

/// Returns another code of the same length.
inline std::string wrong(const std::string& code) { return std::string(code.size(), code[0] == '0' ? '1' : '0'); }

}  // namespace ringlet::test
