#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tools/discovery/datagrams.hpp"
#include "tools/pairing/byte_link.hpp"
#include "tools/pairing/pairing_desk.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::pairing {

/// Where newcomers reach a desk over TCP, on one port of all addresses of this machine. Belongs to the loop's thread.
class PairingDoor {
 public:
  /// Both outlive it.
  PairingDoor(UvLoop& loop, PairingDesk& desk);
  ~PairingDoor();
  PairingDoor(const PairingDoor&) = delete;
  PairingDoor& operator=(const PairingDoor&) = delete;

  /// Listens on those addresses that can be listened on. A failure where there is none.
  Status open(const std::vector<NetworkInterface>& interfaces);
  /// Where it listens; all with the same port.
  const std::vector<Address>& addresses() const noexcept { return addresses_; }
  /// Nobody is connected any more.
  bool quiet() const noexcept { return links_.empty(); }

 private:
  struct Visitor {
    std::unique_ptr<ByteLink> link;
    TimerId timer = 0;  // set once no more is said to it
  };
  void receive(std::unique_ptr<Link> link);
  void on_ended(PairingDesk::Id id);
  void remove(PairingDesk::Id id);
  /// Sends what the desk has to say, lets go of those that it has done with, and comes back when it has something to do.
  void pass_on();

  UvLoop& loop_;
  PairingDesk& desk_;
  UvNetwork network_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Address> addresses_;
  std::map<PairingDesk::Id, Visitor> links_;
  TimerId timer_ = 0;
};

}  // namespace ringlet::pairing
