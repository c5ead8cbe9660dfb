#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>

#include "tests/core/random_beacon.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_datagrams.hpp"
#include "tools/discovery/discovery.hpp"

using namespace ringlet;
using namespace ringlet::discovery;
using namespace ringlet::test;

namespace {

constexpr Duration kSeen = Duration::seconds(2);
constexpr Duration kGone = Duration::seconds(5);

/// A station that runs discovery.
struct Host {
  Host(Air& air, const std::string& named, std::vector<std::uint8_t> networks, bool announces = true)
      : station(air.add_station(std::move(networks))), name(named) {
    DiscoveryOptions options;
    options.seed = air.random().next();
    if (announces) options.profile = profile();
    discovery = std::make_unique<Discovery>(station, station, options,
                                            [this](Change change, const Machine&) { ++changes[static_cast<int>(change)]; });
  }
  Profile profile() const { return {name, "1.0", "home", 3, 7000, {{"cpu", 8, 1000, 500, "avx2"}}, {}}; }
  void start() { discovery->start(); }
  void leave() { discovery->leave(); }
  bool knows(const Host& other) const { return discovery->directory().machines().count(other.discovery->instance()) == 1; }
  std::size_t known() const { return discovery->directory().machines().size(); }

  Station& station;
  std::string name;
  std::unique_ptr<Discovery> discovery;
  std::array<int, 3> changes{};
};

struct Village {
  explicit Village(AirOptions options, std::size_t count) : air(options) {
    for (std::size_t i = 0; i < count; ++i) add();
  }
  Host& add() {
    hosts.push_back(std::make_unique<Host>(air, "host" + std::to_string(hosts.size()), std::vector<std::uint8_t>{0, 1}));
    return *hosts.back();
  }
  void start() {
    for (auto& host : hosts) host->start();
  }
  bool all_know_all() const {
    for (const auto& one : hosts)
      for (const auto& other : hosts)
        if (one != other && !one->knows(*other)) return false;
    return true;
  }
  Air air;
  std::vector<std::unique_ptr<Host>> hosts;
};

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("machines on one network see each other at once") {
  for (const auto seed : seeds(50)) {
    CAPTURE(seed);
    Village village({.seed = seed, .doubled = 100}, 5);
    village.start();
    REQUIRE(village.air.run_until([&] { return village.all_know_all(); }, Duration::milliseconds(50)));
    const Host& first = *village.hosts[0];
    const Machine& seen = first.discovery->directory().machines().at(village.hosts[1]->discovery->instance());
    CHECK(seen.profile.group == "home");
    CHECK(seen.profile.epoch == 3);
    CHECK(seen.profile.devices == village.hosts[1]->profile().devices);
    CHECK(seen.profile.interfaces.size() == 2);
    village.air.run_for(Duration::seconds(60));
    CHECK(first.discovery->heard_itself());
    for (const auto& host : village.hosts) CHECK(host->changes == std::array{4, 0, 0});
  }
}

TEST_CASE("a newcomer is seen within 2 s, who leaves is missed at once, and who dies within 5 s, with loss, doubling and reordering") {
  std::int64_t slowest_seen = 0, slowest_gone = 0;
  std::size_t seen_late = 0;
  const auto all_seeds = seeds(200);
  for (const auto seed : all_seeds) {
    CAPTURE(seed);
    Village village({.seed = seed, .lost = 150, .doubled = 150, .delay = {Duration::microseconds(100), Duration::milliseconds(80)}}, 4);
    village.start();
    village.air.run_for(Duration::seconds(10));
    REQUIRE(village.all_know_all());
    Host& late = village.add();
    late.start();
    const auto seen = village.air.run_until([&] { return village.all_know_all(); }, kSeen + kSeen);
    REQUIRE(seen);
    if (*seen > kSeen) ++seen_late;
    slowest_seen = std::max(slowest_seen, seen->whole_milliseconds());
    village.air.run_for(Duration::seconds(3));

    Host& dying = *village.hosts[1];
    dying.station.kill();
    const auto missed = [&](const Host& one) {
      for (const auto& host : village.hosts)
        if (host.get() != &dying && host.get() != &one && host->knows(one)) return false;
      return true;
    };
    const auto gone = village.air.run_until([&] { return missed(dying); }, kGone);
    REQUIRE(gone);
    slowest_gone = std::max(slowest_gone, gone->whole_milliseconds());
    village.hosts[2]->leave();
    REQUIRE(village.air.run_until([&] { return missed(*village.hosts[2]); }, kGone));
  }
  // All that a newcomer sends in 2 s may be lost on the way to one of the others: once in some 2,000 seeds.
  CHECK(seen_late <= 1 + all_seeds.size() / 1000);
  std::printf("slowest of all: seen after %lld ms, missed after %lld ms\n", static_cast<long long>(slowest_seen),
              static_cast<long long>(slowest_gone));
}

TEST_CASE("nobody flickers where every sixth datagram is lost") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    Village village({.seed = seed, .lost = 160}, 4);
    village.start();
    village.air.run_for(Duration::seconds(300));
    for (const auto& host : village.hosts) CHECK(host->changes == std::array{3, 0, 0});
  }
}

TEST_CASE("where multicast is blocked, a named peer is found, and finds") {
  for (const auto seed : seeds(50)) {
    CAPTURE(seed);
    Village village({.seed = seed, .lost = 50}, 3);
    village.air.multicast = false;
    Host& first = *village.hosts[0];
    Host& second = *village.hosts[1];
    second.station.peers = {address_on(1, first.station.number())};
    village.start();
    REQUIRE(village.air.run_until([&] { return first.knows(second) && second.knows(first); }, kSeen));
    village.air.run_for(Duration::seconds(60));
    CHECK(first.changes == std::array{1, 0, 0});
    CHECK(second.changes == std::array{1, 0, 0});
    CHECK(village.hosts[2]->known() == 0);
    CHECK_FALSE(first.discovery->heard_itself());
    // Goodbyes go both ways, too: to the peer that was named, and to the machine that asks.
    (seed % 2 == 0 ? first : second).leave();
    REQUIRE(village.air.run_until([&] { return (seed % 2 == 0 ? second : first).known() == 0; }, kGone));
  }
}

TEST_CASE("where multicast is blocked, one peer that all name is enough for all to find all") {
  for (const auto seed : seeds(30)) {
    CAPTURE(seed);
    Village village({.seed = seed, .lost = 50}, seed % 2 == 0 ? 5 : 20);
    village.air.multicast = false;
    for (std::size_t i = 1; i < village.hosts.size(); ++i)
      village.hosts[i]->station.peers = {address_on(1, village.hosts[0]->station.number())};
    village.start();
    CHECK(village.air.run_until([&] { return village.all_know_all(); }, Duration::seconds(10)));
    Host looker(village.air, "looker", {1}, false);
    looker.station.peers = {address_on(1, village.hosts[0]->station.number())};
    looker.start();
    CHECK(village.air.run_until([&] { return looker.known() == village.hosts.size(); }, Duration::seconds(5)));
  }
}

TEST_CASE("introductions make nobody send much to a third party") {
  Air air({.seed = 1});
  Host asker(air, "asker", {1}, false);
  Station& liar = air.add_station({1});
  asker.station.peers = {address_on(1, liar.number())};
  asker.start();
  air.run_for(Duration::milliseconds(50));
  for (std::uint64_t lie = 0; lie < 1'000; ++lie) {
    Beacon beacon{Beacon::Kind::presence, 77, lie + 1, {}};
    for (std::uint16_t i = 0; i < kMaxKnown; ++i)
      beacon.known.push_back(address_on(1, static_cast<std::uint16_t>(100 + lie % 50 * kMaxKnown + i)));
    liar.answer({address_on(1, asker.station.number()), 1, 0, 0}, bytes_of(encode_beacon(beacon)));
    air.run_for(Duration::milliseconds(10));
  }
  // In these 10 s: 32 addresses in each 3 s, two queries to each, and those to the liar itself.
  CHECK(asker.station.answers < 4 * 32 * 2 + 20);
}

TEST_CASE("who only looks is not seen, and gets its answers at once") {
  Village village({.seed = 1}, 3);
  village.start();
  village.air.run_for(Duration::seconds(5));
  Host looker(village.air, "looker", {0}, false);
  looker.start();
  REQUIRE(village.air.run_until([&] { return looker.known() == 3; }, Duration::milliseconds(20)));
  village.air.run_for(Duration::seconds(5));
  looker.leave();
  village.air.run_for(Duration::seconds(5));
  CHECK(village.hosts[0]->known() == 2);
  CHECK(looker.changes == std::array{3, 0, 0});
}

TEST_CASE("changes of interfaces and of the profile are told at once") {
  Village village({.seed = 2}, 2);
  Host& mover = *village.hosts[1];
  village.start();
  village.air.run_for(Duration::seconds(3));
  mover.station.change_networks({1});
  REQUIRE(village.air.run_until([&] { return village.hosts[0]->changes[1] == 1; }, Duration::milliseconds(20)));
  Profile profile = mover.profile();
  profile.epoch = 4;
  village.air.run_for(Duration::seconds(3));
  mover.discovery->announce(profile);
  REQUIRE(village.air.run_until([&] { return village.hosts[0]->changes[1] == 2; }, Duration::milliseconds(20)));
  CHECK(village.hosts[0]->discovery->directory().machines().begin()->second.profile.epoch == 4);
  mover.station.change_networks({7});
  REQUIRE(village.air.run_until([&] { return village.hosts[0]->known() == 0; }, kGone));
  mover.station.change_networks({0});
  REQUIRE(village.air.run_until([&] { return village.all_know_all(); }, Duration::milliseconds(20)));
}

TEST_CASE("all that was ever heard, sent again, changes nothing") {
  for (const auto seed : seeds(20)) {
    CAPTURE(seed);
    Village village({.seed = seed}, 4);
    village.start();
    village.air.run_for(Duration::seconds(20));
    village.hosts[3]->leave();
    village.air.run_for(Duration::seconds(10));
    Host& victim = *village.hosts[0];
    const auto record = victim.station.heard;
    const auto before = victim.changes;
    const DatagramSource from{address_on(0, 99), 1, 0, 0};
    for (int round = 0; round < 3'000; ++round) {
      const auto& datagram = record[village.air.random().below(record.size())];
      victim.station.deliver(from, bytes_of(datagram));
      if (round % 10 == 0) village.air.run_for(Duration::milliseconds(10));
    }
    CHECK(victim.changes == before);
    CHECK(victim.known() == 2);
  }
}

TEST_CASE("floods of beacons, queries and rubbish leave memory bounded, answers few, and the others known") {
  for (const auto seed : seeds(10)) {
    CAPTURE(seed);
    Village village({.seed = seed}, 3);
    village.start();
    village.air.run_for(Duration::seconds(2));
    Host& victim = *village.hosts[0];
    SimRandom random(seed);
    const std::size_t answers_before = victim.station.answers;
    std::size_t asked_bytes = 0;
    for (int round = 0; round < 20'000; ++round) {
      const DatagramSource from{address_on(0, static_cast<std::uint16_t>(100 + random.below(1'000))), 1, 0, 0};
      Beacon beacon = random_beacon(random);
      std::string datagram = encode_beacon(beacon);
      if (random.chance(300)) datagram = encode_padded({Beacon::Kind::query, 1 + random.below(50), random.next(), {}}, random.below(1'300));
      if (random.chance(300)) datagram[random.below(datagram.size())] = static_cast<char>(random.next());
      asked_bytes += datagram.size();
      victim.station.deliver(from, bytes_of(datagram));
      if (round % 20 == 0) village.air.run_for(Duration::milliseconds(10));
      REQUIRE(victim.known() <= 256);
    }
    CHECK(village.all_know_all());
    // In 10 s a machine sends 64 answers at once and 64 a second, and questions to machines that seem to have fallen silent.
    CHECK(victim.station.answers - answers_before <= 64 + 640 + 10 * 256 * kMaxSightings);
    CHECK(victim.station.answered_bytes < asked_bytes);
    village.air.run_for(Duration::seconds(5));
    CHECK(victim.known() == 2);
  }
}

TEST_CASE("an answer is never longer than its query, and one source gets few") {
  Village village({.seed = 3}, 1);
  village.start();
  Host& host = *village.hosts[0];
  const DatagramSource from{address_on(0, 50), 1, 0, 0};
  const auto ask = [&](std::uint64_t sequence, std::size_t bytes) {
    host.station.deliver(from, bytes_of(encode_padded({Beacon::Kind::query, 7, sequence, {}}, bytes)));
  };
  ask(1, 40);
  CHECK(host.station.answers == 0);
  village.air.run_for(Duration::seconds(2));
  for (std::uint64_t sequence = 2; sequence < 100; ++sequence) ask(sequence, 1'200);
  CHECK(host.station.answers == 4);
  for (int copy = 0; copy < 10; ++copy) {
    village.air.run_for(Duration::seconds(1));
    ask(200, 1'200);
  }
  CHECK(host.station.answers == 5);
  // The last query that counted is too long ago for a goodbye to the asker.
  host.leave();
  CHECK(host.station.answers == 5);
}

TEST_CASE("who finds another speaking in its name takes a new one") {
  Village village({.seed = 4}, 2);
  village.start();
  village.air.run_for(Duration::seconds(2));
  Host& victim = *village.hosts[0];
  Host& other = *village.hosts[1];
  const std::uint64_t name = victim.discovery->instance();
  const std::string forged = encode_beacon({Beacon::Kind::goodbye, name, UINT64_MAX, {}});
  for (const auto& host : village.hosts) host->station.deliver({address_on(0, 77), 1, 0, 0}, bytes_of(forged));
  CHECK_FALSE(other.knows(victim));
  CHECK(victim.discovery->instance() != name);
  REQUIRE(village.air.run_until([&] { return other.knows(victim); }, kSeen));
}

TEST_CASE("a seed replays a run") {
  const auto run = [](std::uint64_t seed) {
    Village village({.seed = seed, .lost = 100, .doubled = 100}, 3);
    village.start();
    village.air.run_for(Duration::seconds(20));
    return village.hosts[0]->station.heard;
  };
  CHECK(run(5) == run(5));
  CHECK(run(5) != run(6));
}
