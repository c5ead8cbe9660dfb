#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "core/rendezvous/secure_link.hpp"
#include "tests/conformance/network_suite.hpp"
#include "transport/crypto/record_cipher.hpp"

namespace ringlet::test {

/// Returns the key of the direction from this side: 0 dials, 1 accepts.
inline Key key_from(std::size_t side) {
  Key key{};
  key[0] = static_cast<std::byte>(side + 1);
  return key;
}

/// How encrypted links of a test are made.
struct SecureSetup {
  CipherSuite suite = CipherSuite::chacha20_poly1305;
  KeyLimits limits{};
};

inline std::unique_ptr<Link> secured(EventLoop& loop, std::unique_ptr<Link> link, std::size_t side, const SecureSetup& setup = {}) {
  return std::make_unique<SecureLink>(loop, std::move(link), setup.suite, make_record_cipher(setup.suite, key_from(side)),
                                      make_record_cipher(setup.suite, key_from(1 - side)), setup.limits);
}

/// A network whose links are all encrypted, with the same keys.
class SecureNetwork final : public Network {
 public:
  SecureNetwork(EventLoop& loop, Network& network, const SecureSetup& setup) : loop_(loop), network_(network), setup_(setup) {}
  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override {
    return network_.listen(address, [&loop = loop_, on_accept, setup = setup_](std::unique_ptr<Link> link) {
      on_accept(secured(loop, std::move(link), 1, setup));
    });
  }
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override {
    network_.dial(address, timeout, [&loop = loop_, on_dialled, setup = setup_](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) return on_dialled(link.status());
      on_dialled(Result<std::unique_ptr<Link>>(secured(loop, std::move(link).value(), 0, setup)));
    });
  }

 private:
  EventLoop& loop_;
  Network& network_;
  const SecureSetup setup_;
};

/// A pair of networks that puts encrypted links over those of another pair.
class SecurePair final : public conformance::NetworkPair {
 public:
  explicit SecurePair(conformance::NetworkPair& pair, const SecureSetup& setup = {}) : pair_(pair) {
    for (std::size_t side = 0; side < 2; ++side)
      networks_.push_back(std::make_unique<SecureNetwork>(pair.loop(side), pair.network(side), setup));
  }
  EventLoop& loop(std::size_t side) override { return pair_.loop(side); }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t side) override { return pair_.any_port(side); }
  bool drive(const std::function<bool()>& condition) override { return pair_.drive(condition); }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }

 private:
  conformance::NetworkPair& pair_;
  std::vector<std::unique_ptr<Network>> networks_;
};

/// Returns the cases of links but one: here a link that goes without having ended its direction is no orderly end, as another case checks.
inline std::vector<conformance::Case> secure_link_cases() {
  std::vector<conformance::Case> cases;
  for (const auto& family : {conformance::link_cases(), conformance::closing_cases()})
    for (const auto& test : family)
      if (test.name != "sent bytes survive the destruction of the sender") cases.push_back(test);
  return cases;
}

}  // namespace ringlet::test
