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
  std::uint32_t scope = 0;  // interface number of a link-local address
  std::uint32_t way = 0;    // tells the Datagrams object which of its sockets sends an answer
  friend bool operator==(const DatagramSource&, const DatagramSource&) = default;
};

/// The user of a Datagrams. Calls come from the loop's thread, and never during a call that the user makes.
class DatagramUser {
 public:
  /// `bytes` are borrowed for the call. Any machine may have sent them.
  virtual void datagram_came(const DatagramSource& from, ConstBytes bytes) = 0;
  /// Called when the result of interfaces() has changed.
  virtual void interfaces_changed() = 0;

 protected:
  ~DatagramUser() = default;
};

/// Sends datagrams to the machines nearby, and to machines given by name. Datagrams that cannot be sent immediately are dropped. Belongs to
/// the loop's thread.
class Datagrams {
 public:
  virtual ~Datagrams() = default;
  /// Begins to call `user`, which must live until stop() or the end of this object.
  virtual void start(DatagramUser& user) = 0;
  /// Ends all calls to the user. Datagrams given before are still sent.
  virtual void stop() = 0;
  /// Sends by multicast on every usable interface.
  virtual void send_to_all(ConstBytes bytes) = 0;
  /// Sends to each peer given by name.
  virtual void send_to_peers(ConstBytes bytes) = 0;
  virtual void answer(const DatagramSource& to, ConstBytes bytes) = 0;
  /// Whether this datagram came where those that send_to_peers() asks send their answers.
  virtual bool is_from_peers(const DatagramSource& from) const = 0;
  /// Returns the interfaces in use now.
  virtual std::vector<NetworkInterface> interfaces() const = 0;
};

}  // namespace ringlet
