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

/// The interfaces that are up, in the system's order.
std::vector<ListedInterface> list_interfaces();

/// Whether an interface of this name connects virtual machines or containers with their host. The same names and addresses exist on many
/// machines, and none of them leads to another machine.
bool leads_inside(std::string_view name);

/// Returns the interfaces named in `wanted`, at most 16. If it names none: all interfaces for which leads_inside() is false, with the
/// loopback only if there is no other. An entry "!eth0" excludes that interface.
std::vector<ListedInterface> choose_interfaces(std::vector<ListedInterface> all, const std::vector<std::string>& wanted);

}  // namespace ringlet::uv
