#include "sim/sim_network.hpp"
#include "tests/conformance/network_suite.hpp"
#include "tests/transport/loopback.hpp"
#include "tests/web/web_network.hpp"

using namespace ringlet;

namespace {

class WebSimPair final : public conformance::NetworkPair {
 public:
  WebSimPair(std::uint64_t seed, const PathOptions& paths) : world_(SimOptions{.seed = seed, .paths = paths}) {
    for (std::size_t side = 0; side < 2; ++side) {
      SimNode& node = world_.add_node();
      networks_.push_back(std::make_unique<test::WebNetwork>(node.loop(), node.open_network(), static_cast<unsigned>(seed)));
    }
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

class WebUvPair final : public conformance::NetworkPair {
 public:
  WebUvPair() {
    for (unsigned side = 0; side < 2; ++side)
      networks_.push_back(std::make_unique<test::WebNetwork>(loop_, std::make_unique<UvNetwork>(loop_), side));
  }
  EventLoop& loop(std::size_t) override { return loop_; }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t) override { return test::kAnyPort; }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }
  bool drive(const std::function<bool()>& condition) override { return test::drive(loop_, condition); }

 private:
  UvLoop loop_;
  std::vector<std::unique_ptr<Network>> networks_;
};

void run_all(std::uint64_t seed, const PathOptions& paths) {
  CAPTURE(seed);
  for (const auto& test : conformance::network_cases()) {
    INFO(test.name);
    WebSimPair pair(seed, paths);
    test.run(pair);
  }
}

}  // namespace

TEST_CASE("WebSockets conform on calm simulated links") {
  for (const auto& test : conformance::network_cases()) {
    DYNAMIC_SECTION(test.name) {
      WebSimPair pair(0, PathOptions::calm());
      test.run(pair);
    }
  }
}

TEST_CASE("WebSockets conform on links that differ, split and stall") {
  PathOptions paths;
  paths.stall_per_mille = 5;
  paths.stall.most = Duration::milliseconds(5);
  run_all(GENERATE(range<std::uint64_t>(1, 21)), paths);
}

TEST_CASE("WebSockets conform with small buffers") {
  PathOptions paths;
  paths.send_buffer_bytes = {50, 2000};
  paths.receive_buffer_bytes = {50, 2000};
  paths.latency = {{}, Duration::microseconds(2)};
  paths.jitter = Duration::microseconds(1);
  run_all(GENERATE(range<std::uint64_t>(100, 110)), paths);
}

TEST_CASE("WebSockets conform on uv") {
  for (const auto& test : conformance::network_cases()) {
    DYNAMIC_SECTION(test.name) {
      WebUvPair pair;
      test.run(pair);
    }
  }
}
