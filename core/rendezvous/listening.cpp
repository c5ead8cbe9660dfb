// The part of a meeting that listens, and says where.
#include <algorithm>
#include <utility>

#include "core/rendezvous/meeting.hpp"
#include "core/rendezvous/offers.hpp"

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

std::vector<wire::Offer> Meeting::own_offers() const {
  std::vector<wire::Offer> offers;
  for (wire::Offer offer : options_.offers) {
    for (const auto& listener : listeners_)
      if (const Address address = listener->address(); offer.port == 0 && is_heard_at(offer.host, address.host)) offer.port = address.port;
    if (is_dialable(offer)) offers.push_back(std::move(offer));
  }
  return likeliest_first(std::move(offers));
}

}  // namespace ringlet
