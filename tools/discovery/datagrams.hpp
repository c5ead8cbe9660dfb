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

/// Where a datagram came from, and all that it takes to answer it.
struct DatagramSource {
  IpAddress address;
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // of a link-local address: the number of the interface
  std::uint32_t way = 0;    // the network's own: which of its sockets heard it
  friend bool operator==(const DatagramSource&, const DatagramSource&) = default;
};

/// What uses datagrams. Calls come from the loop's thread, never inside a call that the user makes.
class DatagramUser {
 public:
  /// `bytes` are borrowed for the call. They may come from anyone.
  virtual void datagram_came(const DatagramSource& from, ConstBytes bytes) = 0;
  /// interfaces() is another than it was.
  virtual void interfaces_changed() = 0;

 protected:
  ~DatagramUser() = default;
};

/// Sends datagrams to the machines nearby, and to some that were named. Belongs to the loop's thread. What cannot be sent now is dropped.
class Datagrams {
 public:
  virtual ~Datagrams() = default;
  /// Begins to call `user`, which outlives this object or stop().
  virtual void start(DatagramUser& user) = 0;
  /// Calls the user no more. What was sent before still leaves.
  virtual void stop() = 0;
  /// By multicast, on every usable interface.
  virtual void send_to_all(ConstBytes bytes) = 0;
  /// To each address that was named.
  virtual void send_to_peers(ConstBytes bytes) = 0;
  virtual void answer(const DatagramSource& to, ConstBytes bytes) = 0;
  /// Those in use, as they are now.
  virtual std::vector<NetworkInterface> interfaces() const = 0;
};

}  // namespace ringlet
