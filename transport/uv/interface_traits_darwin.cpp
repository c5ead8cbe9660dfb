#include <net/if.h>
#include <net/if_media.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "transport/uv/interface_traits.hpp"

namespace ringlet::uv {

InterfaceTraits traits_of(const std::string& name) {
  InterfaceTraits traits;
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (socket < 0) return traits;
  ifmediareq request{};
  std::strncpy(request.ifm_name, name.c_str(), sizeof request.ifm_name - 1);
  if (::ioctl(socket, SIOCGIFMEDIA, &request) == 0) {
    if (IFM_TYPE(request.ifm_current) == IFM_IEEE80211) traits.kind = wire::Endpoint::Kind::wireless;
    if (IFM_TYPE(request.ifm_current) == IFM_ETHER) traits.kind = wire::Endpoint::Kind::wired;
  }
  ::close(socket);
  return traits;
}

}  // namespace ringlet::uv
