#pragma once

#include <memory>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "tools/discovery/datagrams.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

/// The port at which Ringlet's machines find each other, with the multicast groups 239.255.82.78 and ff12::524e:474c.
inline constexpr std::uint16_t kDiscoveryPort = 47'174;

struct UvDatagramsOptions {
  std::uint16_t port = kDiscoveryPort;
  /// Receives datagrams that others send to this machine's own addresses at `port`. If several programs of a machine do so, each datagram
  /// goes to one of them.
  bool hears_shared_port = true;
  /// The hosts to which datagrams are sent beside multicast. At most 66.
  std::vector<Address> peers{};
  /// The interfaces to use. If empty, all are used except the loopback and those of virtual machines and containers on this machine.
  std::vector<std::string> interfaces{};
};

/// Datagrams over UDP with IPv4 and IPv6, using multicast that no router passes on. Interfaces that appear or disappear are noticed within
/// a second. Several programs on one machine share the port and receive each other's multicast. Destroy it before its loop.
class UvDatagrams final : public Datagrams {
 public:
  UvDatagrams(UvLoop& loop, UvDatagramsOptions options);
  ~UvDatagrams() override;

  void start(DatagramUser& user) override;
  void stop() override;
  void send_to_all(ConstBytes bytes) override;
  void send_to_peers(ConstBytes bytes) override;
  void answer(const DatagramSource& to, ConstBytes bytes) override;
  bool is_from_peers(const DatagramSource& from) const override;
  std::vector<NetworkInterface> interfaces() const override;

  /// If nothing can be received, neither by multicast nor at the shared port, returns `invalid_argument` with the port and the reason.
  /// Otherwise, and before start(), returns ok.
  Status status() const;
  /// Returns "; there is no host NAME" for each named peer whose name cannot be resolved.
  std::string describe_unknown() const;
  /// Returns the number of the shared port for IPv4, or else for IPv6. Returns 0 if nothing is received there.
  std::uint16_t shared_port() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace ringlet
