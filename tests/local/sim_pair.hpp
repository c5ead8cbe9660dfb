#pragma once

#include "sim/sim_network.hpp"
#include "tests/conformance/network_suite.hpp"

namespace ringlet::test {

/// Two nodes of a simulated world.
class SimPair final : public conformance::NetworkPair {
 public:
  SimPair(std::uint64_t seed, const PathOptions& paths) : world(SimOptions{.seed = seed, .paths = paths}) {
    for (std::size_t side = 0; side < 2; ++side) networks_.push_back(world.add_node().open_network());
  }
  SimWorld world;

  EventLoop& loop(std::size_t side) override { return world.node(side).loop(); }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t side) override { return {world.node(side).host(), 0}; }
  bool drive(const std::function<bool()>& condition) override {
    return world.run_until(condition, {.events = 20'000'000, .time = Duration::seconds(60)}) == RunEnd::done;
  }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }

 private:
  std::vector<std::unique_ptr<Network>> networks_;
};

}  // namespace ringlet::test
