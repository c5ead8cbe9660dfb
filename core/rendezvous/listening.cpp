// The part of a meeting that listens, and says where.
#include <algorithm>
#include <utility>

#include "core/rendezvous/endpoints.hpp"
#include "core/rendezvous/meeting.hpp"

namespace ringlet {

Status Meeting::listen() {
  std::vector<Address> addresses;
  if (!listeners_.empty()) {
    // Inherited.
  } else if (!coordinates()) {
    addresses = options_.roster[static_cast<std::size_t>(rank())];
  } else if (options_.listen_at) {
    addresses = {*options_.listen_at};
    if (rank() == 0 && addresses.front().port == 0) addresses.front().port = options_.coordinator->port;
  } else if (rank() == 0) {
    addresses = {*options_.coordinator};
  } else {
    const bool v6 = options_.coordinator->host.find(':') != std::string::npos;
    if (is_loopback(*options_.coordinator))
      addresses = {{v6 ? "::1" : "127.0.0.1", 0}};
    else
      addresses = {{v6 ? "::" : "0.0.0.0", 0}};
  }
  for (const auto& address : addresses) {
    auto listener = network_.listen(address, reception_->acceptor());
    if (!listener.ok())
      return {listener.status().code(), "rank " + std::to_string(rank()) + " cannot listen: " + listener.status().text(), rank()};
    listeners_.push_back(std::move(listener).value());
  }
  listen_also();
  return {};
}

void Meeting::listen_also() {
  const std::uint16_t port = listeners_.front()->address().port;
  for (const std::string& host : options_.also_at) {
    auto listener = network_.listen({host, port}, reception_->acceptor());
    if (listener.ok()) listeners_.push_back(std::move(listener).value());
  }
}

std::vector<wire::Endpoint> Meeting::own_endpoints() const {
  std::vector<wire::Endpoint> endpoints;
  for (wire::Endpoint endpoint : options_.endpoints) {
    for (const auto& listener : listeners_)
      if (const Address address = listener->address(); endpoint.port == 0 && is_heard_at(endpoint.host, address.host))
        endpoint.port = address.port;
    if (is_dialable(endpoint)) endpoints.push_back(std::move(endpoint));
  }
  return likeliest_first(std::move(endpoints));
}

}  // namespace ringlet
