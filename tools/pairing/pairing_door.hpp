#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tools/discovery/datagrams.hpp"
#include "tools/pairing/byte_link.hpp"
#include "tools/pairing/pairing_desk.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::pairing {

/// Accepts newcomers for a desk over TCP, on one port of all addresses of this machine. Belongs to the loop's thread.
class PairingDoor {
 public:
  /// `loop` and `desk` must outlive this object.
  PairingDoor(UvLoop& loop, PairingDesk& desk);
  ~PairingDoor();
  PairingDoor(const PairingDoor&) = delete;
  PairingDoor& operator=(const PairingDoor&) = delete;

  /// Listens on all addresses where that is possible. Fails if there is none.
  Status open(const std::vector<NetworkInterface>& interfaces);
  /// Returns the addresses it listens on. All have the same port.
  const std::vector<Address>& addresses() const noexcept { return addresses_; }
  /// Tells whether no newcomer is connected.
  bool quiet() const noexcept { return links_.empty(); }

 private:
  struct Visitor {
    std::unique_ptr<ByteLink> link;
    TimerId timer = 0;  // set once nothing more is sent to it
  };
  void receive(std::unique_ptr<Link> link);
  void on_ended(PairingDesk::Id id);
  void remove(PairingDesk::Id id);
  /// Sends the desk's bytes, releases visitors whose conversation is over, and sets a timer for the desk's next work.
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
