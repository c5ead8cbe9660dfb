#pragma once

#include <memory>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "tools/discovery/datagrams.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

/// Where Ringlet's machines look for each other: 239.255.82.78 and ff12::524e:474c.
inline constexpr std::uint16_t kDiscoveryPort = 47'174;

struct UvDatagramsOptions {
  std::uint16_t port = kDiscoveryPort;
  /// Whether to hear at `port` what comes from those who named this machine. Of several programs of one machine that do, one gets it.
  bool has_door = true;
  /// Whom to send to by name, beside multicast. At most 64.
  std::vector<Address> peers{};
  /// The interfaces to use; empty: all but the loopback and those that lead to virtual machines and containers of this machine.
  std::vector<std::string> interfaces{};
};

/// Datagrams over UDP, by IPv4 and IPv6, by multicast that no router passes on. Follows interfaces that come and go, within 1 s. Several
/// programs of one machine share the port and hear each other. Destroyed before its loop.
class UvDatagrams final : public Datagrams {
 public:
  UvDatagrams(UvLoop& loop, UvDatagramsOptions options);
  ~UvDatagrams() override;

  void start(DatagramUser& user) override;
  void stop() override;
  void send_to_all(ConstBytes bytes) override;
  void send_to_peers(ConstBytes bytes) override;
  void answer(const DatagramSource& to, ConstBytes bytes) override;
  std::vector<NetworkInterface> interfaces() const override;

  /// Why nothing can be heard, neither by multicast nor at the door: `invalid_argument` with the port and the reason. Ok where something
  /// can, and before start().
  Status status() const;
  /// The door's port, by IPv4 or else by IPv6; 0 where it has none.
  std::uint16_t door_port() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
