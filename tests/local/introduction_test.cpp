#include <random>

#include "core/rendezvous/relay.hpp"
#include "tests/local/peer_memory_network.hpp"
#include "tests/local/shared_ring_network.hpp"
#include "tests/transport/loopback.hpp"
#include "transport/local/memory_shortcut.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

std::mt19937 words{11};

void fill_random(Bytes out) {
  for (std::byte& byte : out) byte = static_cast<std::byte>(words());
}

/// Peer memory that reports another number for this process, as in another namespace.
class StrangeMemory final : public PeerMemory {
 public:
  std::uint64_t own_process() const override { return 0x7fffffff; }
  bool read(std::uint64_t process, std::uint64_t from, std::span<const Bytes> into, std::uint64_t then_from, Bytes then) override {
    return memory_->read(process, from, into, then_from, then);
  }

 private:
  std::unique_ptr<PeerMemory> memory_ = local::open_peer_memory();
};

/// Two ends of a connection on one loop, each with a shortcut.
struct Introduced {
  Pair pair;
  std::unique_ptr<Relay> third;  // passes all bytes on between two connections
  local::MemoryShortcut dialler;
  local::MemoryShortcut acceptor;
  PatternUser one{1, 2, 3'000'000};
  PatternUser two{2, 1, 2'000'000};
  std::array<std::string, 2> mediums;

  struct Way {
    bool through_third = false;
    bool dialler_shares = false, acceptor_shares = false;
  };
  Introduced(PeerMemory* dialler_memory, PeerMemory* acceptor_memory, const Way& way)
      : dialler(pair.loop, dialler_memory, fill_random, way.dialler_shares ? &pair.loop : nullptr),
        acceptor(pair.loop, acceptor_memory, fill_random, way.acceptor_shares ? &pair.loop : nullptr) {
    if (way.through_third) put_third_between();
    take(acceptor, std::move(pair.accepted), LinkSide::acceptor, two, mediums[1]);
    take(dialler, std::move(pair.dialled), LinkSide::dialler, one, mediums[0]);
    REQUIRE(drive(pair.loop, [&] { return !mediums[0].empty() && !mediums[1].empty(); }));
  }
  void take(local::MemoryShortcut& shortcut, std::unique_ptr<Link> link, LinkSide side, PatternUser& user, std::string& medium) {
    shortcut.take(std::move(link), side, [&](Result<std::unique_ptr<Link>> taken) {
      medium = taken.ok() ? std::string(taken.value()->medium()) : taken.status().text();
      if (taken.ok()) user.start_on(std::move(taken).value());
    });
  }
  void put_third_between() {
    third = std::make_unique<Relay>(pair.loop, [] {});
    third->attach(0, std::move(pair.accepted));
    const auto listener = pair.network.listen(kAnyPort, [this](std::unique_ptr<Link> link) { pair.accepted = std::move(link); });
    std::unique_ptr<Link> onward;
    pair.network.dial(listener.value()->address(), kPatience,
                      [&](Result<std::unique_ptr<Link>> link) { onward = std::move(link).value(); });
    REQUIRE(drive(pair.loop, [&] { return onward && pair.accepted; }));
    third->attach(1, std::move(onward));
  }
  void exchange() {
    REQUIRE(drive(pair.loop, [&] { return one.received_bytes == 2'000'000 && two.received_bytes == 3'000'000; }));
    CHECK((one.intact && two.intact));
  }
};

}  // namespace

TEST_CASE("two that can read each other do") {
  const auto memory = local::open_peer_memory();
  if (!memory) return;
  Introduced both(memory.get(), memory.get(), {});
  CHECK(both.mediums[0] == "memory");
  CHECK(both.mediums[1] == "memory");
  both.exchange();
}

TEST_CASE("where one of the two cannot, or will not, both stay as they were") {
  const auto memory = local::open_peer_memory();
  StrangeMemory strange;
  FaultyMemory faulty;
  faulty.fail_per_mille = 1000;
  PeerMemory* const other = GENERATE_REF(static_cast<PeerMemory*>(nullptr), &strange, &faulty);
  const bool dialler = GENERATE(false, true);
  Introduced both(dialler ? other : memory.get(), dialler ? memory.get() : other, {});
  CHECK(both.mediums[0] == "tcp");
  CHECK(both.mediums[1] == "tcp");
  both.exchange();
}

TEST_CASE("two that can share memory do, whether or not they can read each other's") {
  if (!shares_memory()) return;
  FaultyMemory memory;
  memory.fail_per_mille = GENERATE(0U, 1000U);
  Introduced both(&memory, &memory, {.dialler_shares = true, .acceptor_shares = true});
  CHECK(both.mediums[0] == "memory");
  CHECK(both.mediums[1] == "memory");
  both.exchange();
}

TEST_CASE("where one of the two shares no memory, they read each other's") {
  if (!shares_memory()) return;
  FaultyMemory memory;
  memory.fail_per_mille = GENERATE(0U, 1000U);
  const bool dialler = GENERATE(false, true);
  Introduced both(&memory, &memory, {.dialler_shares = dialler, .acceptor_shares = !dialler});
  const std::string expected = memory.fail_per_mille == 0 ? "memory" : "tcp";
  CHECK(both.mediums[0] == expected);
  CHECK(both.mediums[1] == expected);
  both.exchange();
}

TEST_CASE("memory of a process with another number is not shared") {
  if (!shares_memory()) return;
  StrangeMemory strange;
  Introduced both(&strange, &strange, {.dialler_shares = true, .acceptor_shares = true});
  CHECK(both.mediums[0] == "tcp");
  CHECK(both.mediums[1] == "tcp");
  both.exchange();
}

TEST_CASE("a third one that passes on what two say of themselves does not make them read each other") {
  const auto memory = local::open_peer_memory();
  Introduced both(memory.get(), memory.get(), {.through_third = true, .dialler_shares = true, .acceptor_shares = true});
  CHECK(both.mediums[0] == "tcp");
  CHECK(both.mediums[1] == "tcp");
  both.exchange();
}

TEST_CASE("only connections that do not leave the machine are worth asking") {
  class Named final : public Link {
   public:
    explicit Named(std::string name, std::string own = {}) : name_(std::move(name)), own_(std::move(own)) {}
    void start(LinkUser&) override {}
    void wake() override {}
    void finish_sending() override {}
    std::string peer_name() const override { return name_; }
    std::string own_name() const override { return own_; }

   private:
    std::string name_, own_;
  };
  UvLoop loop;
  const auto memory = local::open_peer_memory();
  const local::MemoryShortcut shortcut(loop, memory.get(), fill_random);
  const bool possible = memory != nullptr;
  CHECK(shortcut.offers(Named("127.0.0.1:5000")) == possible);
  CHECK(shortcut.offers(Named("[::1]:5000")) == possible);
  CHECK_FALSE(shortcut.offers(Named("192.168.1.7:5000")));
  CHECK(shortcut.offers(Named("192.168.1.7:5000", "192.168.1.7:40000")) == possible);
  CHECK_FALSE(shortcut.offers(Named("192.168.1.7:5000", "192.168.1.8:40000")));
  CHECK_FALSE(shortcut.offers(Named("something")));
  CHECK_FALSE(local::MemoryShortcut(loop, nullptr, fill_random).offers(Named("127.0.0.1:5000")));
}

TEST_CASE("a peer that goes before it has introduced itself is a failure") {
  const auto memory = local::open_peer_memory();
  Pair pair;
  local::MemoryShortcut shortcut(pair.loop, memory.get(), fill_random);
  std::optional<Status> outcome;
  shortcut.take(std::move(pair.accepted), LinkSide::acceptor, [&](Result<std::unique_ptr<Link>> taken) { outcome = taken.status(); });
  pair.dialled.reset();
  REQUIRE(drive(pair.loop, [&] { return outcome.has_value(); }));
  CHECK(outcome->code() == Errc::peer_lost);
}

TEST_CASE("a peer that says nothing is given up") {
  const auto memory = local::open_peer_memory();
  Pair pair;
  local::MemoryShortcut shortcut(pair.loop, memory.get(), fill_random);
  std::optional<Status> outcome;
  shortcut.take(std::move(pair.accepted), LinkSide::acceptor, [&](Result<std::unique_ptr<Link>> taken) { outcome = taken.status(); });
  REQUIRE(drive(pair.loop, [&] { return outcome.has_value(); }));
  CHECK(outcome->code() == Errc::timed_out);
}
