#include "tests/conformance/suite_user.hpp"
#include "tests/core/seeds.hpp"
#include "tests/local/peer_memory_network.hpp"
#include "tests/local/sim_pair.hpp"

using namespace ringlet;
using namespace ringlet::test;
using conformance::Call;
using conformance::LinkedUsers;
using conformance::SuiteUser;

namespace {

void run_all(std::uint64_t seed, const PathOptions& paths, std::size_t pull_bytes) {
  CAPTURE(seed, pull_bytes);
  for (const auto& test : peer_memory_link_cases()) {
    INFO(test.name);
    SimPair inner(seed, paths);
    PeerMemoryPair pair(inner);
    pair.links.pull_bytes = pull_bytes;
    test.run(pair);
  }
}

/// Sends `bytes` bytes in both directions, calls `disturb` again and again meanwhile, and then ends both directions.
void exchange_disturbed(SimPair& inner, PeerMemoryPair& pair, std::uint64_t seed, std::size_t bytes,
                        const std::function<void(SuiteUser&)>& disturb) {
  LinkedUsers users(pair);
  std::mt19937 random(static_cast<unsigned>(seed));
  users.dialler.longest_part = 1 + random() % 5000;
  users.acceptor.longest_part = 1 + random() % 500;
  const std::array<SuiteUser*, 2> both{&users.dialler, &users.acceptor};
  std::function<void()> again = [&] {
    SuiteUser& user = *both[random() % 2];
    if (user.link && user.link_failed_calls == 0) disturb(user);
    inner.loop(0).after(Duration::microseconds(1 + static_cast<std::int64_t>(random() % 400)), again);
  };
  again();
  for (SuiteUser* user : both) user->send(bytes);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == bytes && users.acceptor.bytes_received == bytes; }));
  for (SuiteUser* user : both) user->finish_sending();
  REQUIRE(pair.drive([&] { return users.dialler.receive_ended_calls == 1 && users.acceptor.receive_ended_calls == 1; }));
  CHECK(users.dialler.bytes_sent == bytes);
  CHECK(users.acceptor.bytes_sent == bytes);
}

}  // namespace

TEST_CASE("a pulled link is a link") {
  const std::size_t pull_bytes = GENERATE(1U, 100U, 100'000'000U);
  for (const auto& test : peer_memory_link_cases()) {
    DYNAMIC_SECTION(test.name << ", " << pull_bytes) {
      SimPair inner(0, PathOptions::calm());
      PeerMemoryPair pair(inner);
      pair.links.pull_bytes = pull_bytes;
      test.run(pair);
    }
  }
}

TEST_CASE("a pulled link is a link on wires that differ, split and stall") {
  PathOptions paths;
  paths.stall_per_mille = 5;
  paths.stall.most = Duration::milliseconds(5);
  run_all(GENERATE(range<std::uint64_t>(1, 16)), paths, GENERATE(20U, 700U));
}

TEST_CASE("a pulled link is a link over small buffers") {
  PathOptions paths;
  paths.send_buffer_bytes = paths.receive_buffer_bytes = {50, 2000};
  paths.latency = {{}, Duration::microseconds(2)};
  run_all(GENERATE(range<std::uint64_t>(100, 110)), paths, 100);
}

TEST_CASE("processes share processors where there are more of them") {
  const std::size_t processors = GENERATE(0U, 1U, 2U, 8U), processes = GENERATE(1U, 2U, 3U, 8U, 9U);
  CAPTURE(processes, processors);
  const auto neighbours = std::make_shared<local::Neighbours>(processors);
  {
    std::deque<local::Neighbours::Place> links;
    while (links.size() + 1 < processes) links.emplace_back(neighbours);
    CHECK(neighbours->share_processors() == (processes > processors));
  }
  CHECK(neighbours->share_processors() == (processors == 0));
}

TEST_CASE("among neighbours that have a processor each, long batches leave by the inner link") {
  // The test counts both ends of its connection.
  const std::size_t processors = GENERATE(2U, 8U);
  SimPair inner(3, PathOptions::calm());
  PeerMemoryPair pair(inner);
  pair.links.pull_bytes = 1000;
  pair.links.tuning.on_own_processors.below = GENERATE(10'000U, 200'000U);
  pair.links.neighbours = std::make_shared<local::Neighbours>(processors);
  LinkedUsers users(pair);
  for (SuiteUser* user : {&users.dialler, &users.acceptor}) {
    user->longest_part = 50'000;
    user->send(1'000'000);
  }
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 1'000'000 && users.acceptor.bytes_received == 1'000'000; }));
  CAPTURE(pair.links.memory.reads);
  CHECK((pair.links.memory.reads > 0) == (processors == 2 || pair.links.tuning.on_own_processors.below == 200'000));
}

TEST_CASE("where neighbours share processors, what is for the caches leaves by the inner link") {
  const std::size_t processors = GENERATE(1U, 8U);
  const bool for_caches = GENERATE(true, false);
  CAPTURE(processors, for_caches);
  SimPair inner(3, PathOptions::calm());
  PeerMemoryPair pair(inner);
  pair.links.pull_bytes = 1000;
  pair.links.tuning.for_caches_on_shared_processors.from = SIZE_MAX;
  pair.links.neighbours = std::make_shared<local::Neighbours>(processors);
  LinkedUsers users(pair);
  users.dialler.longest_part = 50'000;
  users.dialler.for_caches = for_caches;
  users.dialler.send(1'000'000);
  REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == 1'000'000; }));
  CHECK((pair.links.memory.reads > 0) == (processors == 8 || !for_caches));
}

TEST_CASE("long parts are read from the sender's memory") {
  SimPair inner(3, PathOptions::calm());
  PeerMemoryPair pair(inner);
  pair.links.pull_bytes = 1000;
  LinkedUsers users(pair);
  users.dialler.longest_part = 50'000;
  users.dialler.send(1'000'000);
  REQUIRE(pair.drive([&] { return users.dialler.bytes_sent == 1'000'000; }));
  CHECK(users.acceptor.bytes_received == 1'000'000);
  CHECK(pair.links.memory.reads > 0);
  CHECK(pair.links.memory.failures == 0);
  CHECK(users.dialler.link->medium() == "memory");
}

TEST_CASE("what cannot be read comes in the stream instead") {
  const auto seed = GENERATE(from_range(seeds(150)));
  CAPTURE(seed);
  SimPair inner(seed, {});
  PeerMemoryPair pair(inner);
  pair.links.pull_bytes = 1 + seed * 7;
  pair.links.memory.fail_per_mille = seed % 3 == 0 ? 1000 : 20;
  exchange_disturbed(inner, pair, seed, 60'000, [](SuiteUser&) {});
  CHECK(pair.links.memory.failures <= 2);
}

TEST_CASE("nothing that was recalled is delivered, and nothing is lost by it") {
  const auto seed = GENERATE(from_range(seeds(300)));
  CAPTURE(seed);
  SimPair inner(seed, {});
  PeerMemoryPair pair(inner);
  pair.links.pull_bytes = 1 + seed % 5 * 100;
  pair.links.memory.fail_per_mille = seed % 4 == 0 ? 10 : 0;
  int recalls = 0;
  exchange_disturbed(inner, pair, seed, 60'000, [&](SuiteUser& user) {
    ++recalls;
    user.recall();
    user.wake();
  });
  CHECK(recalls > 0);
}

TEST_CASE("recalls inside every call") {
  const auto seed = GENERATE(from_range(seeds(40)));
  CAPTURE(seed);
  SimPair inner(seed, {});
  PeerMemoryPair pair(inner);
  LinkedUsers users(pair);
  for (SuiteUser* user : {&users.dialler, &users.acceptor}) {
    user->on_call = [user, calls = seed](Call call) mutable {
      if (++calls % 7 == 0 && (call == Call::received || call == Call::sent || call == Call::receive_ended)) user->recall();
      if (call == Call::received) user->wake();
    };
    user->send(50'000);
  }
  REQUIRE(pair.drive([&] { return users.dialler.bytes_received == 50'000 && users.acceptor.bytes_received == 50'000; }));
}

TEST_CASE("whoever loses the other end of a pulled link hears of it, whatever was lent") {
  const auto seed = GENERATE(from_range(seeds(120)));
  const auto kind = GENERATE(StopKind::closes_links, StopKind::resets_links);
  CAPTURE(seed);
  SimPair inner(seed, {});
  PeerMemoryPair pair(inner);
  LinkedUsers users(pair);
  users.dialler.longest_part = 3000;
  users.dialler.send(400'000);
  users.acceptor.send(400'000);
  inner.world.stop(inner.world.node(1), kind).in(Duration::microseconds(static_cast<std::int64_t>(50 + seed * 40)));
  REQUIRE(pair.drive([&] { return users.dialler.closed_by_peer(); }));
  // The link may not wait for ever for an answer to what it has lent.
  users.dialler.wake();
  REQUIRE(inner.world.run_until_idle({.events = 1'000'000, .time = Duration::seconds(60)}) == RunEnd::idle);
  CHECK((users.dialler.bytes_sent == 400'000 || users.dialler.link_failed_calls == 1));
}

TEST_CASE("a user without room is asked again after a wake") {
  SimPair inner(5, PathOptions::calm());
  PeerMemoryPair pair(inner);
  LinkedUsers users(pair);
  users.acceptor.receive_limit = 0;
  users.dialler.longest_part = GENERATE(30U, 400U, 20'000U);
  users.dialler.send(100'000);
  users.dialler.finish_sending();
  conformance::settle(pair);
  CHECK(users.acceptor.bytes_received == 0);
  for (std::size_t limit = 777; users.acceptor.bytes_received < 100'000; limit += 7777) {
    users.acceptor.receive_limit = limit;
    users.acceptor.wake();
    REQUIRE(pair.drive([&] { return users.acceptor.bytes_received == std::min<std::size_t>(limit, 100'000); }));
    conformance::settle(pair);
    CHECK(users.acceptor.bytes_received == std::min<std::size_t>(limit, 100'000));
  }
  users.acceptor.wake();
  REQUIRE(pair.drive([&] { return users.acceptor.receive_ended_calls == 1; }));
}
