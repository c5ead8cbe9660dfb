#pragma once

#include <memory>

#include "tests/local/shared_ring_network.hpp"
#include "tests/transport/loopback.hpp"

namespace ringlet::test {

/// A loop's sources, which are asked by the test instead.
struct AskedSources final : PollSources {
  PollSource* source = nullptr;
  void add_source(PollSource& added) override { source = &added; }
  void remove_source(PollSource& removed) override {
    if (source == &removed) source = nullptr;
  }
};

/// A shared-ring link at one end, and an attacker at the other who writes anything into the shared memory.
template <class Victim>
struct AttackedRing {
  Pair pair;
  AskedSources sources;
  std::unique_ptr<local::SharedMemory> memory;
  Victim victim;
  PatternUser bells{3, 4, 1};  // the attacker's end of the inner link, which counts what would wake it

  template <class... Arguments>
  explicit AttackedRing(const Arguments&... arguments) : victim(arguments...) {
    if (!shares_memory()) return;
    auto views = two_views();
    memory = std::move(views[0]);
    bells.start_on(std::move(pair.dialled));
    victim.start_on(std::make_unique<local::SharedRingLink>(std::move(pair.accepted), std::move(views[1]), LinkSide::acceptor, sources));
  }
  local::RingMemory& rings() { return local::ring_memory(*memory); }
  /// Writes bytes of the pattern that the victim expects, and behind them some that the position does not count.
  void write(std::size_t bytes) {
    std::byte* const ring = memory->bytes().data() + local::kRingMemoryHeadBytes;
    for (std::size_t i = 0; i < bytes + 100; ++i) ring[i] = i < bytes ? pattern(2, i) : std::byte{0xee};
    rings().rings[0].written.store(bytes);
  }
  void expect_break() {
    REQUIRE(drive(pair.loop, [&] {
      sources.source->poll();
      return victim.failed();
    }));
    CHECK(victim.failure.code() == Errc::protocol_error);
    CHECK_FALSE(victim.failure.text().empty());
  }
};

}  // namespace ringlet::test
