#pragma once

#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Whether host and port form a valid address of bounded length.
bool is_dialable(const wire::Endpoint& endpoint);

/// Whether a socket that listens at `listening` takes connections to `host`: where the two are the same, or it listens at all addresses of
/// that family.
bool is_heard_at(const std::string& host, const std::string& listening);

/// At most wire::kMaxEndpoints of the endpoints, the likeliest to be fast first: wired before wireless, then by nominal speed; addresses of
/// the link-local range 169.254.0.0/16 come last. The order is stable.
std::vector<wire::Endpoint> likeliest_first(std::vector<wire::Endpoint> endpoints);

}  // namespace ringlet
