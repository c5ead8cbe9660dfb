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
  bool leads_inside = false;  // to virtual machines and containers of this machine
  bool multicast = true;
  std::uint32_t mtu = 0;  // 0: not known
};

/// How far one got on the way to a TCP address.
enum class Reach : std::uint8_t {
  good,           // as far as was tried
  refused,        // the machine answers that nobody listens there
  silent,         // no answer in time
  unreachable,    // the system knows no way, or nobody there answers to the address
  token_differs,  // the handshakes' proofs do not fit
  incompatible,   // the other side speaks another version, or sets encryption otherwise
  stalled,        // small messages pass, large ones do not
  broken,         // the connection ended early
};

/// One way to a machine.
struct PathFacts {
  Address to;
  std::string interface;  // of this machine, where the connection left; empty: not known
  Reach reach = Reach::good;
  std::string text{};                    // what the system or the handshake said, where it failed
  std::optional<Duration> round_trip{};  // of a small message
  double bytes_per_second = 0;           // of large ones, there and back; 0: not measured
};

/// A machine that was heard.
struct MachineFacts {
  std::uint64_t instance = 0;
  std::string name, version, group;
  bool by_multicast = false;  // else only because it was named and asked
  std::uint16_t port = 0;     // of its agent; 0: it has none
  std::vector<PathFacts> paths{};
  std::optional<Duration> clock_ahead{};  // of this machine's
};

/// A machine that was named on the command line.
struct PeerFacts {
  std::string name;  // as it was given
  bool answered = false;
  std::optional<PathFacts> knock{};  // where it did not answer: what TCP says at the same port
  bool neighbour = false;            // its address is of a network that this machine is in
};

/// What one machine measured of its ways to others.
struct MatrixRow {
  std::string from;
  struct Cell {
    std::string to;
    std::optional<Duration> round_trip{};
    double bytes_per_second = 0;
    std::string failure{};
  };
  std::vector<Cell> cells{};
};

/// All that was found out.
struct Facts {
  std::string name, version, group;  // of this machine; the group that is looked at, or empty
  bool macos = false;
  bool has_token = false;
  std::uint16_t discovery_port = 0;
  bool heard_itself = false;  // its own multicast came back
  std::vector<InterfaceFacts> interfaces;
  std::vector<MachineFacts> machines{};
  std::vector<PeerFacts> peers{};
  std::vector<MatrixRow> matrix{};
};

}  // namespace ringlet::doctor
