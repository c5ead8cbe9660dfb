#include "core/rendezvous/endpoints.hpp"

#include <algorithm>
#include <tuple>

namespace ringlet {

namespace {

/// A host's name is shorter, but the scope of an IPv6 address is not.
constexpr std::size_t kMaxHostBytes = 255;

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

auto unlikeliness(const wire::Endpoint& endpoint) {
  using Kind = wire::Endpoint::Kind;
  const int kind = endpoint.kind == Kind::wired ? 0 : endpoint.kind == Kind::unknown ? 1 : 2;
  return std::tuple(endpoint.host.starts_with("169.254."), kind, UINT32_MAX - endpoint.speed_mbps);
}

}  // namespace

bool is_dialable(const wire::Endpoint& endpoint) {
  return endpoint.port > 0 && endpoint.port <= 65'535 && endpoint.host.size() <= kMaxHostBytes &&
         parse_address(to_string(Address{endpoint.host, 1})).ok();
}

bool is_heard_at(const std::string& host, const std::string& listening) {
  return host == listening || listening == (is_v6(host) ? "::" : "0.0.0.0");
}

std::vector<wire::Endpoint> likeliest_first(std::vector<wire::Endpoint> endpoints) {
  std::stable_sort(endpoints.begin(), endpoints.end(),
                   [](const auto& one, const auto& other) { return unlikeliness(one) < unlikeliness(other); });
  if (endpoints.size() > wire::kMaxEndpoints) endpoints.resize(wire::kMaxEndpoints);
  return endpoints;
}

}  // namespace ringlet
