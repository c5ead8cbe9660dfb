#pragma once

#include <memory>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "tools/discovery/datagrams.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

/// The port at which Ringlet's machines look for each other, by the multicast groups 239.255.82.78 and ff12::524e:474c.
inline constexpr std::uint16_t kDiscoveryPort = 47'174;

struct UvDatagramsOptions {
  std::uint16_t port = kDiscoveryPort;
  /// Receives datagrams that others send to this machine's own addresses at `port`. Of several programs of a machine that do, one gets
  /// each.
  bool hears_shared_port = true;
  /// The hosts to which datagrams are sent beside multicast. At most 64.
  std::vector<Address> peers{};
  /// The interfaces to use; empty: all but the loopback and those that lead to virtual machines and containers of this machine.
  std::vector<std::string> interfaces{};
};

/// Datagrams over UDP, by IPv4 and IPv6, with multicast that no router passes on. Interfaces that come and go are followed within a second.
/// Several programs of one machine share the port and hear each other. Destroyed before its loop.
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

  /// Where nothing can be received, neither by multicast nor at the shared port: `invalid_argument` with the port and the reason. Otherwise
  /// ok, also before start().
  Status status() const;
  /// The number of the shared port, of IPv4 or else of IPv6; 0 where it does not receive there.
  std::uint16_t shared_port() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
