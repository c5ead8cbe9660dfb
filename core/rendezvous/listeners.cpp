#include "core/rendezvous/listeners.hpp"

#include <utility>

#include "core/rendezvous/endpoints.hpp"

namespace ringlet {

std::vector<Address> addresses_to_listen_at(const MeetingOptions& options, int rank) {
  if (!options.coordinator) return options.roster[static_cast<std::size_t>(rank)];
  const Address& coordinator = *options.coordinator;
  if (options.listen_at) {
    Address address = *options.listen_at;
    if (rank == 0 && address.port == 0) address.port = coordinator.port;
    return {address};
  }
  if (rank == 0) return {coordinator};
  // There the others dial this rank, too: Debian has the machine's own name at 127.0.1.1.
  if (is_loopback(coordinator)) return {{coordinator.host == "localhost" ? "127.0.0.1" : coordinator.host, 0}};
  return {{coordinator.host.find(':') != std::string::npos ? "::" : "0.0.0.0", 0}};
}

Result<std::unique_ptr<Listener>> listen_at_one_of(Network& network, const std::string& host, const PortRange& ports, int preferred,
                                                   const Acceptor& on_accept) {
  if (ports.any()) return network.listen({host, 0}, on_accept);
  Status failure;
  for (int i = 0; i < ports.count(); ++i) {
    auto listener = network.listen({host, static_cast<std::uint16_t>(ports.first + (preferred + i) % ports.count())}, on_accept);
    if (listener.ok()) return listener;
    failure = listener.status();
  }
  return failure;
}

Status Listeners::open(std::span<const Address> addresses, std::span<const std::string> additional_hosts, const PortRange& ports,
                       int preferred, const Acceptor& on_accept) {
  if (listeners_.empty())
    for (const Address& address : addresses) {
      const bool chooses = address.port == 0 && !ports.any() && !is_loopback(address);
      auto listener = chooses ? listen_at_one_of(network_, address.host, ports, preferred, on_accept) : network_.listen(address, on_accept);
      if (!listener.ok() && chooses)
        return {listener.status().code(),
                "none of the ports " + to_string(ports) + " of RINGLET_PORTS can be used; the last one: " + listener.status().text()};
      if (!listener.ok()) return listener.status();
      listeners_.push_back(std::move(listener).value());
    }
  const std::uint16_t port = address().port;
  for (const std::string& host : additional_hosts) {
    auto listener = network_.listen({host, port}, on_accept);
    if (listener.ok()) listeners_.push_back(std::move(listener).value());
  }
  return {};
}

std::vector<wire::Endpoint> Listeners::reachable(std::span<const wire::Endpoint> endpoints) const {
  std::vector<wire::Endpoint> found;
  for (wire::Endpoint endpoint : endpoints) {
    for (const auto& listener : listeners_)
      if (const Address address = listener->address(); endpoint.port == 0 && is_heard_at(endpoint.host, address.host))
        endpoint.port = address.port;
    if (is_dialable(endpoint)) found.push_back(std::move(endpoint));
  }
  return likeliest_first(std::move(found));
}

}  // namespace ringlet
