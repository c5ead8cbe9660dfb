#pragma once

#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Whether host and port can be an address.
bool is_dialable(const wire::Endpoint& endpoint);

/// Whether a socket that listens at `listening` also hears who dials `host`: the same, or all addresses of its family.
bool is_heard_at(const std::string& host, const std::string& listening);

/// The likeliest to be fast first: wired before wireless, then by nominal speed, those that a link has given itself last. What is alike
/// keeps its order. At most wire::kMaxEndpoints.
std::vector<wire::Endpoint> likeliest_first(std::vector<wire::Endpoint> endpoints);

}  // namespace ringlet
