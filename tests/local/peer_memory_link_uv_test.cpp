#include "tests/local/peer_memory_network.hpp"
#include "tests/local/shared_ring_network.hpp"
#include "tests/transport/uv_pair.hpp"

using namespace ringlet;
using namespace ringlet::test;

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

TEST_CASE("a link through shared memory is a link") {
  if (!shares_memory()) return;
  for (const auto& family : {conformance::link_cases(), conformance::closing_cases()}) {
    for (const auto& test : family) {
      DYNAMIC_SECTION(test.name) {
        UvPair inner;
        WrappedPair<SharedRingLinks> pair(inner, inner.sources());
        test.run(pair);
      }
    }
  }
}

TEST_CASE("a pulled link through shared memory is a link") {
  if (!shares_memory()) return;
  const std::size_t pull_bytes = GENERATE(1U, 100U, 100'000'000U);
  for (const auto& test : peer_memory_link_cases()) {
    DYNAMIC_SECTION(test.name << ", " << pull_bytes) {
      UvPair inner;
      WrappedPair<SharedRingLinks> rings(inner, inner.sources());
      PeerMemoryPair pair(rings);
      pair.links.tuning = local::kOverRings;
      pair.links.pull_bytes = pull_bytes;
      test.run(pair);
    }
  }
}
