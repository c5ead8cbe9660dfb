#pragma once

#include "tests/conformance/network_suite.hpp"
#include "tests/transport/loopback.hpp"

namespace ringlet::test {

/// A pair of networks over the loopback, both on one loop.
class UvPair final : public conformance::NetworkPair {
 public:
  EventLoop& loop(std::size_t) override { return loop_; }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t) override { return kAnyPort; }
  bool drive(const std::function<bool()>& condition) override { return test::drive(loop_, condition); }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }
  PollSources& sources() { return loop_; }

 private:
  UvLoop loop_;
  std::array<std::unique_ptr<UvNetwork>, 2> networks_{std::make_unique<UvNetwork>(loop_), std::make_unique<UvNetwork>(loop_)};
};

}  // namespace ringlet::test
