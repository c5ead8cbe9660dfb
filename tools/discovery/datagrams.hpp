#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/ip_address.hpp"

namespace ringlet {

struct NetworkInterface {
  std::string name;
  std::vector<IpAddress> addresses;
  friend bool operator==(const NetworkInterface&, const NetworkInterface&) = default;
};

/// The source of a datagram, with all that is needed to answer it.
struct DatagramSource {
  IpAddress address;
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // of a link-local address: the number of the interface
  std::uint32_t way = 0;    // says to the Datagrams by which of its sockets an answer leaves
  friend bool operator==(const DatagramSource&, const DatagramSource&) = default;
};

/// The user of a Datagrams. Calls come from the loop's thread, never inside a call that the user makes.
class DatagramUser {
 public:
  /// `bytes` are borrowed for the call. Any machine may have sent them.
  virtual void datagram_came(const DatagramSource& from, ConstBytes bytes) = 0;
  /// The result of interfaces() has changed.
  virtual void interfaces_changed() = 0;

 protected:
  ~DatagramUser() = default;
};

/// Sends datagrams to the machines nearby, and to machines that were named. Datagrams that cannot be sent at once are dropped. Belongs to
/// the loop's thread.
class Datagrams {
 public:
  virtual ~Datagrams() = default;
  /// Begins to call `user`, which outlives this object or stop().
  virtual void start(DatagramUser& user) = 0;
  /// Ends all calls to the user. Datagrams that were sent before still leave.
  virtual void stop() = 0;
  /// Sends by multicast, on every usable interface.
  virtual void send_to_all(ConstBytes bytes) = 0;
  /// Sends to each address that was named.
  virtual void send_to_peers(ConstBytes bytes) = 0;
  virtual void answer(const DatagramSource& to, ConstBytes bytes) = 0;
  /// The interfaces in use, as they are now.
  virtual std::vector<NetworkInterface> interfaces() const = 0;
};

}  // namespace ringlet
