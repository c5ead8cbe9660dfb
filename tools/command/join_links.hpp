#pragma once

#include <string>
#include <vector>

#include "transport/uv/interface_list.hpp"

namespace ringlet::command {

/// Returns the hosts at which other machines reach a port that listens on `host`, the likeliest first. If `host` means all addresses, those
/// are the addresses of home or office networks, then other networks', then those of bridges to virtual machines and containers. This
/// machine's loopback addresses are returned only if there are no others.
std::vector<std::string> reachable_hosts(const std::string& host, const std::vector<uv::ListedInterface>& interfaces);

/// Returns a link such as "http://192.168.1.7:7000/#token=...". The part after # stays in the browser. `encrypt` is "on" or "off", or empty
/// to leave encryption out of the link.
std::string join_link(const std::string& host, int port, const std::string& token, const std::string& encrypt = {});

}  // namespace ringlet::command
