#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.hpp"

namespace ringlet::sim {

/// The ports of the machines, which all connections of a machine share in each direction. Links inside a machine pass none.
class MachinePorts {
 public:
  /// Puts a new node on the machine of the node `machine`, whose port it shares.
  void set_machine(std::uint32_t node, std::uint32_t machine);
  /// Limits the port of the node's machine.
  void limit(std::uint32_t node, std::uint64_t bytes_per_second);

  /// Returns when this many bytes that are at the port from `at` on have passed it, that of the sender or that of the receiver.
  Instant leave(std::uint32_t sender, std::uint32_t receiver, Instant at, std::size_t bytes);
  Instant enter(std::uint32_t sender, std::uint32_t receiver, Instant at, std::size_t bytes);

 private:
  struct Port {
    std::uint64_t bytes_per_second = 0;  // 0: no limit
    Instant sending_until, receiving_until;
  };

  std::uint32_t machine_of(std::uint32_t node) const { return node < machines_.size() ? machines_[node] : node; }
  Instant pass(std::uint32_t machine, Instant Port::* until, Instant at, std::size_t bytes);

  std::vector<Port> ports_;              // by the first node of a machine, up to the last one with a limit
  std::vector<std::uint32_t> machines_;  // by node, up to the last one that shares a machine: the machine's first node
};

}  // namespace ringlet::sim
