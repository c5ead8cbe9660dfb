#include "tools/datagrams/datagram_socket.hpp"

#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ringlet::uv {
namespace {

// This bounds one turn's work if datagrams arrive faster than they are handled. The loop reports the remaining ones again.
constexpr int kReceivesPerTurn = 64;
constexpr std::size_t kMaxDatagramBytes = 2'048;  // a longer datagram is truncated; Ringlet sends none

int family_of(const IpAddress& address) { return address.family() == IpAddress::Family::v4 ? AF_INET : AF_INET6; }

template <class Value>
bool set(int socket, int level, int option, const Value& value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

ip_mreqn membership4(const GroupPlace& place) {
  ip_mreqn request{};
  std::memcpy(&request.imr_multiaddr, place.group.bytes().data(), 4);
  std::memcpy(&request.imr_address, place.own.bytes().data(), 4);
  request.imr_ifindex = static_cast<int>(place.interface);
  return request;
}

bool join(int socket, const GroupPlace& place) {
  if (place.group.family() == IpAddress::Family::v4) return set(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, membership4(place));
  ipv6_mreq request{};
  std::memcpy(&request.ipv6mr_multiaddr, place.group.bytes().data(), 16);
  request.ipv6mr_interface = place.interface;
  return set(socket, IPPROTO_IPV6, IPV6_JOIN_GROUP, request);
}

bool send_there(int socket, const GroupPlace& place) {
  if (place.group.family() == IpAddress::Family::v4) {
    // BSD expects one byte for each of these options, not an int.
    const unsigned char one = 1;
    return set(socket, IPPROTO_IP, IP_MULTICAST_IF, membership4(place)) && set(socket, IPPROTO_IP, IP_MULTICAST_TTL, one) &&
           set(socket, IPPROTO_IP, IP_MULTICAST_LOOP, one);
  }
  const int one = 1;
  return set(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, place.interface) && set(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, one) &&
         set(socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, one);
}

bool bind_to(int socket, const SocketAddress& address) { return ::bind(socket, address.get(), address.length) == 0; }

SocketAddress any_address(int family, std::uint16_t port) {
  SocketAddress address;
  std::memset(&address.storage, 0, sizeof address.storage);
  address.storage.ss_family = static_cast<sa_family_t>(family);
  address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  // The port is at the same offset in both families' structures.
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
  return address;
}

}  // namespace

SocketAddress socket_address(const IpAddress& address, std::uint16_t port, std::uint32_t scope) {
  SocketAddress result = any_address(family_of(address), port);
  if (address.family() == IpAddress::Family::v4) {
    std::memcpy(&reinterpret_cast<sockaddr_in*>(&result.storage)->sin_addr, address.bytes().data(), 4);
  } else {
    auto& v6 = *reinterpret_cast<sockaddr_in6*>(&result.storage);
    std::memcpy(&v6.sin6_addr, address.bytes().data(), 16);
    v6.sin6_scope_id = scope;
  }
  return result;
}

Result<DatagramSocket*> DatagramSocket::watch(LoopState& loop, int socket, const char* purpose, OnDatagram on_datagram) {
  int error = errno;
  if (socket >= 0) {
    auto* watched = new DatagramSocket(loop, std::move(on_datagram));
    error = -watched->open(socket);
    if (error == 0) {
      watched->set_interest(UV_READABLE);
      return watched;
    }
    watched->drop();
    ::close(socket);
  }
  return Status{Errc::invalid_argument, std::string("cannot ").append(purpose).append(": ").append(describe_error(error))};
}

namespace {

/// Returns the socket if all calls succeeded. Otherwise closes it and returns -1, with errno unchanged.
int checked(int socket, bool well) {
  if (well || socket < 0) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

}  // namespace

Result<DatagramSocket*> DatagramSocket::open_group_receiver(LoopState& loop, const GroupPlace& place, OnDatagram on_datagram) {
  const int family = family_of(place.group);
  int socket = open_datagram_socket(family);
  if (socket >= 0) hear_own_groups_only(socket, family);
  socket = checked(socket, socket >= 0 && share_port(socket) && bind_to(socket, socket_address(place.group, place.port, place.interface)) &&
                               join(socket, place));
  const std::string purpose = "hear multicast at UDP port " + std::to_string(place.port);
  return watch(loop, socket, purpose.c_str(), std::move(on_datagram));
}

Result<DatagramSocket*> DatagramSocket::open_group_sender(LoopState& loop, const GroupPlace& place, OnDatagram on_datagram) {
  int socket = open_datagram_socket(family_of(place.group));
  // An IPv6 interface has several addresses; the system chooses the one to send from.
  const auto own = place.own.family() == IpAddress::Family::v4 ? socket_address(place.own, 0, 0) : any_address(AF_INET6, 0);
  socket = checked(socket, socket >= 0 && bind_to(socket, own) && send_there(socket, place));
  return watch(loop, socket, "send multicast", std::move(on_datagram));
}

Result<DatagramSocket*> DatagramSocket::open_unicast(LoopState& loop, IpAddress::Family family, std::uint16_t port,
                                                     OnDatagram on_datagram) {
  const int number = family == IpAddress::Family::v4 ? AF_INET : AF_INET6;
  int socket = open_datagram_socket(number);
  if (socket >= 0) hear_own_groups_only(socket, number);
  socket = checked(socket, socket >= 0 && (port == 0 || share_port(socket)) && bind_to(socket, any_address(number, port)));
  const std::string purpose = "hear at UDP port " + std::to_string(port);
  return watch(loop, socket, purpose.c_str(), std::move(on_datagram));
}

void DatagramSocket::send(const SocketAddress& to, ConstBytes bytes) {
  if (!closed()) ::sendto(socket(), bytes.data(), bytes.size(), kSendFlags, to.get(), to.length);
}

void DatagramSocket::on_ready(int, bool broken) {
  if (broken) take_error(socket());
  std::array<std::byte, kMaxDatagramBytes> buffer;
  for (int count = 0; count < kReceivesPerTurn && !closed(); ++count) {
    SocketAddress from;
    const auto got = ::recvfrom(socket(), buffer.data(), buffer.size(), MSG_DONTWAIT, from.get(), &from.length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    on_datagram_(from, ConstBytes(buffer).first(static_cast<std::size_t>(got)));
  }
  // uv stops watching a socket whose error it reports.
  if (!closed()) set_interest(UV_READABLE);
}

}  // namespace ringlet::uv
