#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "tools/command/subcommand.hpp"
#include "tools/datagrams/uv_datagrams.hpp"

namespace ringlet::command {

/// What `discover` and `up` have in common on the command line, as it stands there.
struct DiscoveryLine {
  std::vector<std::string> peers;
  std::vector<std::string> interfaces;
  std::uint16_t port = kDiscoveryPort;
  bool json = false;
};

void declare_discovery_options(CLI::App& app, DiscoveryLine& line);

/// "attic", "192.168.1.7:4000", "fe80::1%eth0", "[fe80::1%eth0]:4000"; `port` where none is said. `invalid_argument` with the text.
Result<Address> parse_peer(const std::string& text, std::uint16_t port);

/// Into the sockets' form; a sentence where that cannot be.
std::optional<std::string> convert_discovery_line(const DiscoveryLine& line, UvDatagramsOptions& options);

}  // namespace ringlet::command
