#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/ports/network.hpp"
#include "core/rendezvous/meeting_options.hpp"

namespace ringlet {

/// Where a rank that has inherited no socket listens. A port of 0 is to be chosen by the system.
std::vector<Address> addresses_to_listen_at(const MeetingOptions& options, int rank);

/// The first phase of a meeting: the ports at which the other ranks dial this one. Belongs to the loop's thread.
class Listeners {
 public:
  /// The network outlives it.
  explicit Listeners(Network& network) : network_(network) {}

  /// Takes over a listener that was opened elsewhere; then open() opens no address but the additional ones.
  void adopt(std::unique_ptr<Listener> listener) { listeners_.push_back(std::move(listener)); }
  /// Opens all addresses, at least one, and on the additional hosts the first one's port, as far as that works.
  Status open(std::span<const Address> addresses, std::span<const std::string> additional_hosts, const Acceptor& on_accept);
  void close() { listeners_.clear(); }

  /// The first one's; only after open().
  Address address() const { return listeners_.front()->address(); }
  /// Those of `endpoints` at which a listener hears who dials, the likeliest first, with its port where theirs is 0. An endpoint that has
  /// a port is taken as it is.
  std::vector<wire::Endpoint> reachable(std::span<const wire::Endpoint> endpoints) const;

 private:
  Network& network_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace ringlet
