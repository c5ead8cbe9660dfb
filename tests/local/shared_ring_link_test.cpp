#include "transport/local/shared_ring_link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/local/attacked_ring.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::local;

namespace {

constexpr std::size_t kBytesOfVictim = 100'000;

std::uint64_t this_process() { return static_cast<std::uint64_t>(::getpid()); }

/// The victim sends and receives patterns.
struct AttackedPatterns : AttackedRing<PatternUser> {
  AttackedPatterns() : AttackedRing(1, 2, kBytesOfVictim) {}
};

}  // namespace

TEST_CASE("positions that cannot be end the link") {
  if (!shares_memory()) return;
  AttackedPatterns attacked;
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
  AttackedPatterns attacked;
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.sent_bytes == kBytesOfVictim; }));
  attacked.write(3000);
  attacked.bells.close();
  REQUIRE(drive(attacked.pair.loop, [&] { return attacked.victim.ended || attacked.victim.failed(); }));
  CHECK(attacked.victim.received_bytes == 3000);
  CHECK(attacked.victim.intact);
}

TEST_CASE("a side that blocks says so, and is woken once by what it waits for") {
  if (!shares_memory()) return;
  AttackedPatterns attacked;
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
  AttackedPatterns attacked;
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

TEST_CASE("memory takes pages when they are used") {
  if (!shares_memory()) return;
  // Where the system promises no more memory than it has, they are taken at once.
  std::ifstream setting("/proc/sys/vm/overcommit_memory");
  int overcommit = 2;
  setting >> overcommit;
  const auto memory = make_shared_memory(kRingMemoryBytes);
  const auto pages_taken = [&] {
    struct stat facts{};
    REQUIRE(::fstat(memory->descriptor(), &facts) == 0);
    return static_cast<long>(facts.st_blocks) * 512 / ::sysconf(_SC_PAGESIZE);
  };
  CHECK((pages_taken() == 0) == (overcommit != 2));
  memory->bytes()[5000] = std::byte{1};
  if (overcommit != 2) CHECK(pages_taken() == 1);
}

TEST_CASE("a limit of the size of files refuses memory, instead of ending the process") {
  if (!shares_memory()) return;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  // Nothing is checked meanwhile, since that could write to a file.
  rlimit limit{8192, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const bool fits = make_shared_memory(8192) != nullptr;
  const bool exceeds = make_shared_memory(8192 + 4096) != nullptr;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(fits);
  CHECK_FALSE(exceeds);
}
