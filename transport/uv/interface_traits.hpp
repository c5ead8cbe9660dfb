#pragma once

#include <cstdint>
#include <string>

#include "core/wire/control.hpp"

namespace ringlet::uv {

/// The system's knowledge of an interface beside its addresses.
struct InterfaceTraits {
  wire::Endpoint::Kind kind = wire::Endpoint::Kind::unknown;
  std::uint32_t speed_mbps = 0;  // nominal; 0: not known
};

/// The traits of the interface with this name; those of one that does not exist are unknown.
InterfaceTraits traits_of(const std::string& name);

}  // namespace ringlet::uv
