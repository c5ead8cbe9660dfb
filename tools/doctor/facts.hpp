#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/time.hpp"

namespace ringlet::doctor {

/// A network interface of this machine.
struct InterfaceFacts {
  std::string name;
  std::vector<std::string> addresses;
  bool loopback = false;
  bool leads_inside = false;  // leads to virtual machines and containers of this machine
  bool multicast = true;
  std::uint32_t mtu = 0;  // 0 if not known
  bool named = false;     // given on the command line; then only those are used
};

/// How far an attempt to reach a TCP address got.
enum class Reach : std::uint8_t {
  good,           // no problem up to the last step tried
  refused,        // the machine answers that no program listens there
  silent,         // no answer in time
  unreachable,    // the system knows no route, or no machine has the address
  token_differs,  // the handshake's proofs do not match
  not_trusted,    // one of the two machines does not trust the other's key
  incompatible,   // the other side has another version, or another setting for encryption
  stalled,        // small messages pass, large ones do not
  broken,         // the connection was taken, but ended early
};

/// A port at which ranks of a machine could listen, as tried from another one.
struct RankPort {
  std::uint16_t port = 0;  // 0: none was tried
  std::string failure{};
};

/// One path to a machine.
struct PathFacts {
  Address to;
  std::string interface;  // of this machine, from which the connection left; empty if not known
  Reach reach = Reach::good;
  std::string text{};                    // the message of the system or the handshake after a failure
  std::optional<Duration> round_trip{};  // of a small message
  double bytes_per_second = 0;           // for large messages, there and back; 0 if not measured
  RankPort rank_port{};
};

/// A machine whose beacons were received.
struct MachineFacts {
  std::uint64_t instance = 0;
  std::string name, version, group;
  bool by_multicast = false;  // false if it answered only because it was named and asked
  std::uint16_t port = 0;     // of its agent; 0 if it has none
  std::vector<PathFacts> paths{};
  std::optional<Duration> clock_ahead{};  // relative to this machine's clock
};

/// A machine given on the command line.
struct PeerFacts {
  std::string name;  // as given
  bool answered = false;
  std::optional<PathFacts> knock{};  // if it did not answer: the result of TCP at the same port
  bool neighbour = false;            // whether its address is in a network of this machine
  bool unknown = false;              // whether there is no host of that name
};

/// One machine's measurements of its paths to others.
struct MatrixRow {
  std::string from;
  struct Cell {
    std::string to;
    std::optional<Duration> round_trip{};
    double bytes_per_second = 0;
    std::string failure{};
    RankPort rank_port{};
  };
  std::vector<Cell> cells{};
};

/// All results of an examination.
struct Facts {
  std::string name, version, group;  // this machine's name and version; the examined group, or empty
  bool macos = false;
  std::string firewall_tool{};  // of this machine: ufw, firewall-cmd or nft; empty if there is none
  bool has_token = false;
  std::uint16_t discovery_port = 0;
  bool heard_itself = false;  // whether its own multicast came back
  std::vector<InterfaceFacts> interfaces;
  std::vector<MachineFacts> machines{};
  std::vector<PeerFacts> peers{};
  std::vector<MatrixRow> matrix{};
};

/// Tells whether the interface is looked at: those that were named, else those that lead to other machines.
bool is_used(const Facts& facts, const InterfaceFacts& interface);

}  // namespace ringlet::doctor
