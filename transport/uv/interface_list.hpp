#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ip_address.hpp"

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

/// Whether it is a bridge or a cable of virtual machines and containers: the same names and addresses stand on many machines, and none
/// leads to another.
bool leads_inside(std::string_view name);

/// Those named in `wanted`, or, where it names none, all but those that lead inside and the loopback, which is taken only where there is no
/// other. "!eth0" in `wanted` leaves one out. At most 16.
std::vector<ListedInterface> choose_interfaces(std::vector<ListedInterface> all, const std::vector<std::string>& wanted);

}  // namespace ringlet::uv
