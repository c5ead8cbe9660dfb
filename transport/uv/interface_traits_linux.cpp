#include <net/if_arp.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "transport/uv/interface_traits.hpp"

namespace ringlet::uv {

namespace {

/// Reads the whole number that a file holds; returns -1 if it holds none, like the speed file of an interface without a speed.
long number_in(const std::string& path) {
  std::ifstream file(path);
  long number = -1;
  return file >> number ? number : -1;
}

}  // namespace

InterfaceTraits traits_of(const std::string& name) {
  const std::string folder = "/sys/class/net/" + name + "/";
  InterfaceTraits traits;
  const auto has = [&](const char* entry) { return ::access((folder + entry).c_str(), F_OK) == 0; };
  const long type = number_in(folder + "type");
  if (has("wireless") || has("phy80211"))
    traits.kind = wire::Endpoint::Kind::wireless;
  else if (type == ARPHRD_ETHER || type == ARPHRD_INFINIBAND)
    traits.kind = wire::Endpoint::Kind::wired;
  traits.speed_mbps = static_cast<std::uint32_t>(std::clamp<long>(number_in(folder + "speed"), 0, 10'000'000));
  return traits;
}

}  // namespace ringlet::uv
