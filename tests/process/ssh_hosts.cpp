#include "tests/process/ssh_hosts.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace ringlet::test {

const SshHosts* SshHosts::find() {
  std::optional<std::string> mistake = NetworkOfHosts::enter();
  if (!mistake && !SshServer::is_here()) mistake = "no ssh server for root";
  if (mistake) {
    std::printf("skipped: no network namespaces on this system: %s\n", mistake->c_str());
    return nullptr;
  }
  static const SshHosts hosts;
  return &hosts;
}

std::unique_ptr<CommandProcess> SshHosts::start(Words options, const Words& program, Variables environment) const {
  options.insert(options.begin(), "launch");
  if (std::find(options.begin(), options.end(), "--ssh") == options.end()) options.insert(options.end(), {"--ssh", keys_.command()});
  options.emplace_back("--");
  return network_.host(0).run(std::move(options) + program, std::move(environment));
}

Outcome SshHosts::run(Words options, const Words& program, Variables environment) const {
  const auto process = start(std::move(options), program, std::move(environment));
  process->close_stdin();
  return process->finish();
}

Outcome SshHosts::run_other(Words arguments) const {
  arguments.insert(arguments.end(), {"--ssh", keys_.command()});
  const auto process = network_.host(0).run(std::move(arguments));
  process->close_stdin();
  return process->finish();
}

}  // namespace ringlet::test
