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

/// The options that `discover` and `up` share, as given on the command line.
struct DiscoveryLine {
  std::vector<std::string> peers;
  std::vector<std::string> interfaces;
  std::uint16_t port = kDiscoveryPort;
  bool json = false;
};

void declare_discovery_options(CLI::App& app, DiscoveryLine& line);

/// Reads "attic", "192.168.1.7:4000", "fe80::1%eth0" or "[fe80::1%eth0]:4000". If there is no port, it is `port`. If the text is none of
/// these, returns `invalid_argument` with the text.
Result<Address> parse_peer(const std::string& text, std::uint16_t port);

/// Converts the options for the sockets. Returns one sentence if that is not possible.
std::optional<std::string> convert_discovery_line(const DiscoveryLine& line, UvDatagramsOptions& options);
/// Makes a program that only looks ask the `ringlet up` of this machine, too, which tells whom it hears: it may have been given peers that
/// multicast does not reach.
void ask_this_machine(UvDatagramsOptions& options);

}  // namespace ringlet::command
