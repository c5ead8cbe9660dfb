#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/ssh_server.hpp"

namespace ringlet::test {

/// Three hosts, with ssh servers on the second and third; the launcher runs on the first.
class SshHosts {
 public:
  using Words = std::vector<std::string>;
  using Variables = std::vector<std::pair<std::string, std::string>>;

  /// Returns the same hosts for all cases of a test program; null, with a message, where the system cannot have them.
  static const SshHosts* find();

  SshHosts() = default;

  const std::string& directory() const noexcept { return keys_.directory(); }
  /// Returns a command for --ssh; `config` is a file of `SshKeys`.
  std::string ssh(const std::string& config) const { return keys_.command(config); }
  /// Starts `ringlet launch OPTIONS -- PROGRAM` on the first host, with an --ssh that works where the options have none.
  std::unique_ptr<CommandProcess> start(Words options, const Words& program, Variables environment = {}) const;
  /// Runs the same to its end, with nothing on standard input.
  Outcome run(Words options, const Words& program, Variables environment = {}) const;
  /// Runs `ringlet ARGUMENTS` on the first host to its end, with an --ssh that works.
  Outcome run_other(Words arguments) const;

 private:
  NetworkOfHosts network_{3};
  SshKeys keys_;
  SshServer second_{network_.host(1), keys_}, third_{network_.host(2), keys_};
};

/// The option for four ranks on the three hosts.
inline const SshHosts::Words kAllHosts{"--hosts", "10.77.0.1,root@10.77.0.2:2,10.77.0.3"};

inline SshHosts::Words operator+(SshHosts::Words left, const SshHosts::Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline SshHosts::Words script(const std::string& text) { return {"/bin/sh", "-c", text}; }

}  // namespace ringlet::test
