#pragma once

#include <functional>

#include "core/base/ip_address.hpp"
#include "core/base/result.hpp"
#include "transport/uv/loop_state.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::uv {

/// Converts an address to the system's form. `scope` is the interface's number, for a link-local IPv6 address.
SocketAddress socket_address(const IpAddress& address, std::uint16_t port, std::uint32_t scope);

/// A multicast group on one interface.
struct GroupPlace {
  IpAddress group;
  std::uint16_t port = 0;
  std::uint32_t interface = 0;  // its number
  IpAddress own;                // the interface's address, of the group's family
};

/// A UDP socket on the loop. It has one owner, which releases it by drop().
class DatagramSocket final : public SocketWatch {
 public:
  using OnDatagram = std::function<void(const SocketAddress& from, ConstBytes bytes)>;

  // Each of these returns a socket, or `invalid_argument` with the reason. `on_datagram` runs on the loop.

  /// Receives datagrams to the group on this interface. Other programs on this machine may do so at the same time.
  static Result<DatagramSocket*> open_group_receiver(LoopState& loop, const GroupPlace& place, OnDatagram on_datagram);
  /// Sends to the group on this interface, not beyond the next router. Programs on this machine receive the datagrams too. Receives the
  /// answers.
  static Result<DatagramSocket*> open_group_sender(LoopState& loop, const GroupPlace& place, OnDatagram on_datagram);
  /// Receives datagrams to this machine's own addresses at `port`. If several programs do so, each datagram goes to one of them. With port
  /// 0 the system chooses a port.
  static Result<DatagramSocket*> open_unicast(LoopState& loop, IpAddress::Family family, std::uint16_t port, OnDatagram on_datagram);

  /// Sends immediately, or drops the datagram.
  void send(const SocketAddress& to, ConstBytes bytes);
  std::uint16_t port() const { return to_address(local_address(socket())).port; }

 private:
  DatagramSocket(LoopState& loop, OnDatagram on_datagram) : SocketWatch(loop), on_datagram_(std::move(on_datagram)) {}
  static Result<DatagramSocket*> watch(LoopState& loop, int socket, const char* purpose, OnDatagram on_datagram);
  void on_ready(int events, bool broken) override;

  OnDatagram on_datagram_;
};

}  // namespace ringlet::uv
