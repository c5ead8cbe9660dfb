#include "tests/local/peer_memory_network.hpp"
#include "tests/transport/loopback.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// A pair of networks over the loopback, both on one loop.
class UvPair final : public conformance::NetworkPair {
 public:
  EventLoop& loop(std::size_t) override { return loop_; }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t) override { return kAnyPort; }
  bool drive(const std::function<bool()>& condition) override { return test::drive(loop_, condition); }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }

 private:
  UvLoop loop_;
  std::array<std::unique_ptr<UvNetwork>, 2> networks_{std::make_unique<UvNetwork>(loop_), std::make_unique<UvNetwork>(loop_)};
};

}  // namespace

TEST_CASE("a pulled link over TCP is a link") {
  const std::size_t pull_bytes = GENERATE(1U, 100U, 100'000'000U);
  for (const auto& test : peer_memory_link_cases()) {
    DYNAMIC_SECTION(test.name << ", " << pull_bytes) {
      UvPair inner;
      PeerMemoryPair pair(inner);
      pair.links.pull_bytes = pull_bytes;
      test.run(pair);
    }
  }
}
