#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ports/datagrams.hpp"

namespace ringlet::uv {

/// An interface that is up, as the system lists it.
struct ListedInterface {
  std::string name;
  std::uint32_t index = 0;  // the system's number
  bool loopback = false;
  std::vector<IpAddress> addresses;
  friend bool operator==(const ListedInterface&, const ListedInterface&) = default;
};

/// In the system's order.
std::vector<ListedInterface> list_interfaces();

/// Those named in `wanted`, or, where it is empty, all but bridges and cables of virtual machines and containers, and the loopback, which
/// is taken only where there is no other. At most 16.
std::vector<ListedInterface> choose_interfaces(std::vector<ListedInterface> all, const std::vector<std::string>& wanted);

}  // namespace ringlet::uv
