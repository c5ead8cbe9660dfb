#pragma once

#include <ifaddrs.h>

#include <memory>

namespace ringlet::uv {

struct SystemAddressesFreed {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

/// The addresses of all interfaces, as a list; null where there is no memory for it. uv_interface_addresses of libuv 1.44 reads from null
/// there.
inline std::unique_ptr<ifaddrs, SystemAddressesFreed> system_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  return std::unique_ptr<ifaddrs, SystemAddressesFreed>(list);
}

}  // namespace ringlet::uv
