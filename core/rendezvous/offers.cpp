#include "core/rendezvous/offers.hpp"

#include <algorithm>
#include <tuple>

namespace ringlet {

namespace {

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

auto unlikeliness(const wire::Offer& offer) {
  using Kind = wire::Offer::Kind;
  const int kind = offer.kind == Kind::wired ? 0 : offer.kind == Kind::unknown ? 1 : 2;
  return std::tuple(offer.host.starts_with("169.254."), kind, UINT32_MAX - offer.speed_mbps);
}

}  // namespace

bool is_dialable(const wire::Offer& offer) {
  return offer.port > 0 && offer.port <= 65'535 && parse_address(to_string(Address{offer.host, 1})).ok();
}

bool is_heard_at(const std::string& host, const std::string& listening) {
  return host == listening || listening == (is_v6(host) ? "::" : "0.0.0.0");
}

std::vector<wire::Offer> likeliest_first(std::vector<wire::Offer> offers) {
  std::stable_sort(offers.begin(), offers.end(),
                   [](const auto& one, const auto& other) { return unlikeliness(one) < unlikeliness(other); });
  if (offers.size() > kMostOffers) offers.resize(kMostOffers);
  return offers;
}

}  // namespace ringlet
