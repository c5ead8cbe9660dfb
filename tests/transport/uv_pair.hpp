#pragma once

#include "tests/conformance/network_suite.hpp"
#include "tests/transport/loopback.hpp"

namespace ringlet::test {

/// A pair of networks over the loopback, both on one loop or each on its own.
class UvPair final : public conformance::NetworkPair {
 public:
  explicit UvPair(bool two_loops = false, Address any_port = kAnyPort) : any_port_(std::move(any_port)) {
    loops_.push_back(std::make_unique<UvLoop>());
    if (two_loops) loops_.push_back(std::make_unique<UvLoop>());
    for (std::size_t side = 0; side < 2; ++side) networks_.push_back(std::make_unique<UvNetwork>(uv_loop(side)));
  }

  PollSources& sources() { return uv_loop(0); }
  EventLoop& loop(std::size_t side) override { return uv_loop(side); }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t) override { return any_port_; }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }
  bool drive(const std::function<bool()>& condition) override {
    if (loops_.size() == 1) return test::drive(*loops_[0], condition);
    const auto deadline = loops_[0]->now() + kPatience;
    while (!condition()) {
      if (loops_[0]->now() > deadline) return false;
      for (auto& loop : loops_) loop->poll();
    }
    return true;
  }

 private:
  UvLoop& uv_loop(std::size_t side) { return *loops_[side % loops_.size()]; }

  const Address any_port_;
  std::vector<std::unique_ptr<UvLoop>> loops_;
  std::vector<std::unique_ptr<UvNetwork>> networks_;
};

}  // namespace ringlet::test
