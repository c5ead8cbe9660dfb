#pragma once

#include <string>
#include <vector>

namespace ringlet::command {

/// A network interface's address, as the system lists it.
struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool internal = false;
};

/// This machine's addresses, in the system's order.
std::vector<InterfaceAddress> interface_addresses();

/// At which hosts others reach a port that listens on `host`, the likeliest first: where it stands for all addresses, those of a home or
/// office network, then others, and bridges of virtual machines and containers last; this machine's own where there is no other.
std::vector<std::string> reachable_hosts(const std::string& host, const std::vector<InterfaceAddress>& addresses);

/// "http://192.168.1.7:7000/#token=..."; the part behind # stays in the browser. `encrypt`: what it says of encryption, "on" or "off";
/// empty: nothing.
std::string join_link(const std::string& host, int port, const std::string& token, const std::string& encrypt = {});

}  // namespace ringlet::command
