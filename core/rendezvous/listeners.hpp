#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/ports/network.hpp"
#include "core/rendezvous/meeting_options.hpp"

namespace ringlet {

/// The addresses at which a rank listens that has inherited no socket. The system chooses the port where it is 0.
std::vector<Address> addresses_to_listen_at(const MeetingOptions& options, int rank);

/// Listens at the first of these ports that is free, beginning with the `preferred`-th, or at any port if the range is. Returns the failure
/// of the last one that was tried.
Result<std::unique_ptr<Listener>> listen_at_one_of(Network& network, const std::string& host, const PortRange& ports, int preferred,
                                                   const Acceptor& on_accept);

/// The first phase of a meeting: the ports at which the other ranks dial this one. Belongs to the loop's thread.
class Listeners {
 public:
  /// The network outlives it.
  explicit Listeners(Network& network) : network_(network) {}

  /// Takes over a listener that was opened elsewhere. open() then opens only the additional addresses.
  void adopt(std::unique_ptr<Listener> listener) { listeners_.push_back(std::move(listener)); }
  /// Opens all addresses, of which there is at least one, and the first one's port on the additional hosts. Additional hosts that cannot be
  /// opened are left out.
  /// Where an address has no port, one of `ports` is taken, the `preferred`-th if it is free; but any on the loopback.
  Status open(std::span<const Address> addresses, std::span<const std::string> additional_hosts, const PortRange& ports, int preferred,
              const Acceptor& on_accept);
  void close() { listeners_.clear(); }

  /// The first listener's address. Only valid after open().
  Address address() const { return listeners_.front()->address(); }
  /// The `endpoints` at which one of the listeners can be dialled, the likeliest to be fast first. Where an endpoint's port is 0, it gets
  /// the listener's port; an endpoint that has a port is taken as it is.
  std::vector<wire::Endpoint> reachable(std::span<const wire::Endpoint> endpoints) const;

 private:
  Network& network_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace ringlet
