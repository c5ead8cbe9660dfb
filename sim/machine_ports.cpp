#include "sim/machine_ports.hpp"

#include <algorithm>

namespace ringlet::sim {

void MachinePorts::set_machine(std::uint32_t node, std::uint32_t machine) {
  while (machines_.size() < node) machines_.push_back(static_cast<std::uint32_t>(machines_.size()));
  machines_.push_back(machine);
}

void MachinePorts::limit(std::uint32_t node, std::uint64_t bytes_per_second) {
  const std::uint32_t machine = machine_of(node);
  if (ports_.size() <= machine) ports_.resize(machine + std::size_t{1});
  ports_[machine].bytes_per_second = bytes_per_second;
}

Instant MachinePorts::leave(std::uint32_t sender, std::uint32_t receiver, Instant at, std::size_t bytes) {
  const std::uint32_t from = machine_of(sender);
  return from == machine_of(receiver) ? at : pass(from, &Port::sending_until, at, bytes);
}

Instant MachinePorts::enter(std::uint32_t sender, std::uint32_t receiver, Instant at, std::size_t bytes) {
  const std::uint32_t to = machine_of(receiver);
  return machine_of(sender) == to ? at : pass(to, &Port::receiving_until, at, bytes);
}

Instant MachinePorts::pass(std::uint32_t machine, Instant Port::* until, Instant at, std::size_t bytes) {
  if (machine >= ports_.size() || ports_[machine].bytes_per_second == 0) return at;
  Port& port = ports_[machine];
  port.*until =
      std::max(port.*until, at) + Duration{static_cast<std::int64_t>(std::uint64_t{bytes} * 1'000'000'000 / port.bytes_per_second)};
  return port.*until;
}

}  // namespace ringlet::sim
