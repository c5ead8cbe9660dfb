#include <catch2/catch.hpp>

#include "sim/sim_network.hpp"
#include "tests/conformance/network_suite.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using ringlet::test::share_of;

namespace {

class SimPair final : public conformance::NetworkPair {
 public:
  SimPair(std::uint64_t seed, const PathOptions& paths) : world_(SimOptions{.seed = seed, .paths = paths}) {
    for (std::size_t side = 0; side < 2; ++side) networks_.push_back(world_.add_node().open_network());
  }
  EventLoop& loop(std::size_t side) override { return world_.node(side).loop(); }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t side) override { return {world_.node(side).host(), 0}; }
  bool drive(const std::function<bool()>& condition) override {
    return world_.run_until(condition, {.events = 20'000'000, .time = Duration::seconds(60)}) == RunEnd::done;
  }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }

 private:
  SimWorld world_;
  std::vector<std::unique_ptr<Network>> networks_;
};

void run_all(std::uint64_t seed, const PathOptions& paths) {
  CAPTURE(seed);
  for (const auto& test : conformance::network_cases()) {
    INFO(test.name);
    SimPair pair(seed, paths);
    test.run(pair);
  }
}

}  // namespace

TEST_CASE("the simulated network conforms") {
  for (const auto& test : conformance::network_cases()) {
    DYNAMIC_SECTION(test.name) {
      SimPair pair(0, PathOptions::calm());
      test.run(pair);
    }
  }
}

TEST_CASE("the simulated network conforms on links that differ, split and stall") {
  PathOptions paths;
  paths.stall_per_mille = 5;
  paths.stall.most = Duration::milliseconds(5);
  run_all(GENERATE(range<std::uint64_t>(1, 1 + share_of(40))), paths);
}

TEST_CASE("the simulated network conforms with small buffers") {
  PathOptions paths;
  paths.send_buffer_bytes = {50, 2000};
  paths.receive_buffer_bytes = {50, 2000};
  paths.latency = {{}, Duration::microseconds(2)};
  paths.jitter = Duration::microseconds(1);
  run_all(GENERATE(range<std::uint64_t>(100, 100 + share_of(20))), paths);
}
