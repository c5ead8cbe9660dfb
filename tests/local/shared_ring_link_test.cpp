#include "transport/local/shared_ring_link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/local/shared_ring_network.hpp"
#include "tests/transport/loopback.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::local;

namespace {

constexpr std::size_t kBytesOfVictim = 100'000;

std::uint64_t this_process() { return static_cast<std::uint64_t>(::getpid()); }

/// A loop's sources, which are asked by the test instead.
struct AskedSources final : PollSources {
  PollSource* source = nullptr;
  void add_source(PollSource& added) override { source = &added; }
  void remove_source(PollSource& removed) override {
    if (source == &removed) source = nullptr;
  }
};

/// A shared-ring link at one end, and an attacker at the other who writes anything into the shared memory.
struct AttackedRing {
  Pair pair;
  AskedSources sources;
  std::unique_ptr<SharedMemory> memory;
  PatternUser victim{1, 2, kBytesOfVictim};
  PatternUser bells{3, 4, 1};  // the attacker's end of the inner link, which counts what would wake it

  void start() {
    auto views = two_views();
    memory = std::move(views[0]);
    bells.start_on(std::move(pair.dialled));
    victim.start_on(std::make_unique<SharedRingLink>(std::move(pair.accepted), std::move(views[1]), LinkSide::acceptor, sources));
  }
  RingMemory& rings() { return ring_memory(*memory); }
  /// Writes bytes of the pattern that the victim expects, and behind them some that the position does not count.
  void write(std::size_t bytes) {
    std::byte* const ring = memory->bytes().data() + kRingMemoryHeadBytes;
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

}  // namespace

TEST_CASE("positions that cannot be end the link") {
  if (!shares_memory()) return;
  AttackedRing attacked;
  attacked.start();
  SECTION("more written than there is room for") {
    attacked.rings().rings[0].written.store(kRingBytes + 1);
    attacked.expect_break();
  }
  SECTION("less written than read") {
    attacked.write(2000);
    REQUIRE(attacked.sources.source->poll());
    CHECK(attacked.victim.received_bytes == 2000);
    attacked.rings().rings[0].written.store(1999);
    attacked.expect_break();
  }
  SECTION("more read than written") {
    attacked.rings().rings[1].read.store(kBytesOfVictim);
    attacked.expect_break();
  }
}

TEST_CASE("what a peer wrote before it was killed is received before its end") {
  if (!shares_memory()) return;
  AttackedRing attacked;
  attacked.start();
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.sent_bytes == kBytesOfVictim; }));
  attacked.write(3000);
  attacked.bells.close();
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.ended || attacked.victim.failed(); }));
  CHECK(attacked.victim.received_bytes == 3000);
  CHECK(attacked.victim.intact);
}

TEST_CASE("a side that blocks says so, and is woken once by what it waits for") {
  if (!shares_memory()) return;
  AttackedRing attacked;
  attacked.start();
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.sent_bytes == kBytesOfVictim; }));
  settle(attacked.pair.loop);
  CHECK(attacked.bells.received_bytes == 0);
  PollSource& source = *attacked.sources.source;
  auto& awaits = attacked.rings().sides[1].awaits;

  SECTION("it may block while there is nothing") {
    CHECK(source.prepare_to_block());
    CHECK(awaits.load() == static_cast<std::uint32_t>(Awaits::bytes));
    source.awake();
    CHECK(awaits.load() == 0);
  }
  SECTION("it may not block while there is something") {
    attacked.write(10);
    CHECK_FALSE(source.prepare_to_block());
    source.awake();
    CHECK(source.poll());
    CHECK(attacked.victim.received_bytes == 10);
  }
  SECTION("it may not block before the end was told") {
    attacked.rings().rings[0].ended.store(1);
    CHECK_FALSE(source.prepare_to_block());
    source.awake();
    CHECK(source.poll());
    CHECK(attacked.victim.ended);
    CHECK(source.prepare_to_block());
  }
  SECTION("a byte on the inner link makes it look") {
    CHECK(source.prepare_to_block());
    attacked.write(10);
    // The attacker's first byte left long ago, so its end is what wakes.
    attacked.bells.close();
    REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.received_bytes == 10; }));
  }
  SECTION("room is told to a peer that waits for it, once") {
    attacked.rings().sides[0].awaits.store(static_cast<std::uint32_t>(Awaits::room));
    attacked.write(10);
    CHECK(source.poll());
    REQUIRE(drive(attacked.pair.loop, [&] { return attacked.bells.received_bytes == 1; }));
    CHECK(attacked.rings().sides[0].awaits.load() == 0);
    settle(attacked.pair.loop);
    CHECK(attacked.bells.received_bytes == 1);
  }
  SECTION("room is not told to a peer that waits for bytes") {
    attacked.rings().sides[0].awaits.store(static_cast<std::uint32_t>(Awaits::bytes));
    attacked.write(10);
    CHECK(source.poll());
    settle(attacked.pair.loop);
    CHECK(attacked.bells.received_bytes == 0);
  }
}

TEST_CASE("bytes are told to a peer that waits for them, and a full ring waits for room") {
  if (!shares_memory()) return;
  AttackedRing attacked;
  attacked.start();
  attacked.rings().sides[0].awaits.store(static_cast<std::uint32_t>(Awaits::either));
  // The ring has room for a few bytes only, as if its reader was late.
  attacked.rings().rings[1].read.store(std::uint64_t{0} - (kRingBytes - 50));
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.sent_bytes == 50 && attacked.bells.received_bytes == 1; }));
  PollSource& source = *attacked.sources.source;
  CHECK(source.prepare_to_block());
  CHECK(attacked.rings().sides[1].awaits.load() == static_cast<std::uint32_t>(Awaits::either));
  attacked.rings().rings[1].read.store(0);
  CHECK_FALSE(source.prepare_to_block());
  source.awake();
  CHECK(source.poll());
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.sent_bytes == kBytesOfVictim; }));
}

TEST_CASE("only memory whose size is fixed is opened") {
  if (!shares_memory()) return;
  const auto opens = [](int descriptor, std::size_t bytes = 8192) {
    return open_shared_memory(this_process(), descriptor, bytes) != nullptr;
  };
  const auto memory = make_shared_memory(8192);
  REQUIRE(memory);
  CHECK(opens(memory->descriptor()));
  CHECK_FALSE(opens(memory->descriptor(), 4096));
  CHECK_FALSE(opens(-2));
  const int number = memory->descriptor();
  memory->close_descriptor();
  CHECK(memory->descriptor() == -1);
  CHECK_FALSE(opens(number));

  // Its maker could make it shorter, and every byte behind that would be a SIGBUS.
  const int unsealed = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(::ftruncate(unsealed, 8192) == 0);
  CHECK_FALSE(opens(unsealed));
  ::close(unsealed);
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  CHECK_FALSE(opens(pipe[0]));
  for (const int end : pipe) ::close(end);
}
