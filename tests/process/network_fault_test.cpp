// Tests of what ranks on several hosts do when the network between them fails in one of the ways in which networks fail.
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>

#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/process/network_of_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

constexpr int kRanks = 3;
// The ranks allow 1 s of silence, and 3 s for an operation.
constexpr double kBoundSeconds = 8;

bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

/// One rank on each of three hosts, which run collectives and messages without end.
struct World {
  World(const char* heartbeat_timeout_ms, const char* operation_timeout_ms) {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string script = "unset RINGLET_COORDINATOR_FD; export RINGLET_RANK=" + std::to_string(rank) +
                                 " RINGLET_WORLD_SIZE=3 RINGLET_COORDINATOR=" + network.host(0).address() +
                                 ":4711 RINGLET_TOKEN=the-token-of-this-test-alone RINGLET_INTERFACES=eth0; exec \"$LOOP\" --tell";
      ranks.push_back(network.host(rank).run(script_arguments({"-n", "1", "--no-prefix", "--linger", "0"}, script),
                                             {{"LOOP", RINGLET_COLLECTIVE_LOOP},
                                              {"RINGLET_HEARTBEAT_TIMEOUT_MS", heartbeat_timeout_ms},
                                              {"RINGLET_TIMEOUT_MS", operation_timeout_ms}}));
    }
    for (const auto& rank : ranks) rank->wait_for_stdout("met\n");
  }

  NetworkOfHosts network{kRanks};
  std::vector<std::unique_ptr<CommandProcess>> ranks;
};

void drop_arriving(const NetworkHost& host, const std::string& what) {
  host.command("nft add table inet fault");
  host.command("nft 'add chain inet fault in { type filter hook input priority 0; }'");
  host.command("nft add rule inet fault in " + what);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Fault {
  const char* name;
  void (*make)(const NetworkHost& host);
  /// Whether the two other ranks can see that it is this host's, and so have to blame its rank.
  bool shows_whose;
};

const Fault kFaults[] = {
    {"a host's cable is pulled", [](const NetworkHost& host) { host.ip("link set eth0 down"); }, true},
    {"a host hears nobody any more", [](const NetworkHost& host) { drop_arriving(host, "meta l4proto tcp drop"); }, false},
    {"a host's connections are reset", [](const NetworkHost& host) { drop_arriving(host, "meta l4proto tcp reject with tcp reset"); },
     true},
    {"a host loses packets of full size", [](const NetworkHost& host) { drop_arriving(host, "meta length 1000-65535 drop"); }, false},
    {"a host loses its address", [](const NetworkHost& host) { host.ip("addr flush dev eth0"); }, true},
};

}  // namespace

TEST_CASE("whatever happens to the network of one host, all ranks end within their limits, and blame another") {
  if (!networks_are_here()) return;
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const Fault& fault : kFaults) {
    Campaign campaign(fault.name);
    for (std::uint64_t attempt = 0; attempt < share_of(2); ++attempt) {
      campaign.begin();
      World world("1000", "3000");
      const int victim = static_cast<int>(random() % kRanks);
      CAPTURE(fault.name, victim);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
      const auto accident = Campaign::Clock::now();
      fault.make(world.network.host(victim));
      bool well = true;
      for (int rank = 0; rank < kRanks; ++rank) {
        const Outcome outcome = world.ranks[static_cast<std::size_t>(rank)]->finish();
        CAPTURE(rank, outcome.out, outcome.err);
        const bool blames_victim = outcome.out.find("blames " + std::to_string(victim) + ":") != std::string::npos;
        // A rank that others do not hear any more learns that from them.
        const bool blames_itself = outcome.out.find("blames " + std::to_string(rank) + ":") != std::string::npos &&
                                   outcome.out.find("so says rank") == std::string::npos;
        const bool right = outcome.exit_code == 1 && !blames_itself && (rank == victim || !fault.shows_whose || blames_victim);
        CHECK(right);
        well &= right;
      }
      const std::chrono::duration<double> taken = Campaign::Clock::now() - accident;
      CHECK(taken.count() < kBoundSeconds);
      if (well && taken.count() < kBoundSeconds) campaign.goes_well_since(accident);
    }
  }
}

TEST_CASE("a host whose network is slow, or away for less than the limit of 5 s, loses nobody") {
  if (!networks_are_here()) return;
  Campaign campaign("a host's network is slow, or away for a moment");
  for (const bool slow : {true, false}) {
    CAPTURE(slow);
    campaign.begin();
    World world("5000", "600000");
    const NetworkHost& host = world.network.host(1);
    if (slow) {
      host.command("tc qdisc replace dev eth0 root tbf rate 1mbit burst 16kb limit 64kb");
    } else {
      drop_arriving(host, "meta l4proto tcp drop");
      std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
      host.command("nft delete table inet fault");
    }
    // Longer than the limit of silence.
    std::this_thread::sleep_for(std::chrono::seconds(7));
    if (slow) host.command("tc qdisc del dev eth0 root");
    for (const auto& rank : world.ranks) {
      rank->read_what_came();
      CAPTURE(rank->out(), rank->err());
      rank->wait_for_stdout("12 rounds\n", count_of(rank->out(), "12 rounds\n") + 2);
    }
    campaign.goes_well();
  }
}
