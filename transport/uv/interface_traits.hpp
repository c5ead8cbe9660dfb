#pragma once

#include <cstdint>
#include <string>

#include "core/wire/control.hpp"

namespace ringlet::uv {

/// The facts about an interface, other than its addresses, that the system knows.
struct InterfaceTraits {
  wire::Endpoint::Kind kind = wire::Endpoint::Kind::unknown;
  std::uint32_t speed_mbps = 0;  // nominal; 0: not known
};

/// Returns the traits of the interface with this name; they are unknown if there is no such interface.
InterfaceTraits traits_of(const std::string& name);

}  // namespace ringlet::uv
