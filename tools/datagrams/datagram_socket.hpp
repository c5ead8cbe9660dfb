#pragma once

#include <functional>

#include "core/base/ip_address.hpp"
#include "core/base/result.hpp"
#include "transport/uv/loop_state.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::uv {

/// `scope` is the interface's number, for a link-local IPv6 address.
SocketAddress socket_address(const IpAddress& address, std::uint16_t port, std::uint32_t scope);

/// A group of receivers on one interface.
struct GroupPlace {
  IpAddress group;
  std::uint16_t port = 0;
  std::uint32_t interface = 0;  // its number
  IpAddress own;                // the interface's address, of the group's family
};

/// A UDP socket on the loop. Owned by one outside object, which lets go with drop().
class DatagramSocket final : public SocketWatch {
 public:
  using OnDatagram = std::function<void(const SocketAddress& from, ConstBytes bytes)>;

  // Each gives a socket, or `invalid_argument` with what went wrong; `on_datagram` runs on the loop.

  /// Hears what is sent to the group on this interface, beside others of this machine that do.
  static Result<DatagramSocket*> open_ear(LoopState& loop, const GroupPlace& place, OnDatagram on_datagram);
  /// Sends to the group on this interface, no further than the next router, heard by this machine, too; hears what is sent back.
  static Result<DatagramSocket*> open_mouth(LoopState& loop, const GroupPlace& place, OnDatagram on_datagram);
  /// Hears what is sent to this machine alone: at `port`, beside others, of whom one gets it, or at any port where that is 0.
  static Result<DatagramSocket*> open_door(LoopState& loop, IpAddress::Family family, std::uint16_t port, OnDatagram on_datagram);

  /// At once or not at all.
  void send(const SocketAddress& to, ConstBytes bytes);
  std::uint16_t port() const { return to_address(local_address(socket())).port; }

 private:
  DatagramSocket(LoopState& loop, OnDatagram on_datagram) : SocketWatch(loop), on_datagram_(std::move(on_datagram)) {}
  static Result<DatagramSocket*> watch(LoopState& loop, int socket, const char* purpose, OnDatagram on_datagram);
  void on_ready(int events, bool broken) override;

  OnDatagram on_datagram_;
};

}  // namespace ringlet::uv
