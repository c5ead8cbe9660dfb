#pragma once

#include <cstdint>
#include <string>

#include "core/wire/control.hpp"

namespace ringlet::uv {

/// What the system knows of an interface beside its addresses.
struct InterfaceTraits {
  wire::Endpoint::Kind kind = wire::Endpoint::Kind::unknown;
  std::uint32_t speed_mbps = 0;  // nominal; 0: not known
};

/// Of an interface with this name; nothing known of one that is not there.
InterfaceTraits traits_of(const std::string& name);

}  // namespace ringlet::uv
