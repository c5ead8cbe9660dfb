// Tests of parts by bandwidth among hosts, of which one turns slow while they train, and fast again.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "tests/process/network_of_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

constexpr int kHosts = 3, kSlow = 2;

void set_rate(const NetworkHost& host, const std::string& rate) {
  host.command("tc qdisc replace dev eth0 root tbf rate " + rate + " burst 32kb limit 1048576");
}

std::ptrdiff_t count_lines_with(const std::string& text, const std::string& part) {
  const std::vector<std::string> lines = sorted_lines(text);
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

void set_all_rates(const NetworkOfHosts& network) {
  for (int host = 0; host < kHosts; ++host) set_rate(network.host(host), "40mbit");
}

/// Whether rank 0 has told of a change by which a rank's links are at least half again as fast as before.
bool has_faster_change(const std::string& text) {
  const std::regex change("links carry ([0-9]+) Mbit/s, which were ([0-9]+) Mbit/s");
  return std::any_of(std::sregex_iterator(text.begin(), text.end(), change), std::sregex_iterator(),
                     [](const std::smatch& found) { return 2 * std::stod(found[1]) >= 3 * std::stod(found[2]); });
}

using Variables = std::vector<std::pair<std::string, std::string>>;

/// A rank on each host with these settings, all of which train until stop().
struct Training {
  Training(const NetworkOfHosts& hosts, const Variables& settings) : network(hosts) {
    for (int rank = 0; rank < kHosts; ++rank) {
      const std::string script = "unset RINGLET_COORDINATOR_FD; export RINGLET_RANK=" + std::to_string(rank) +
                                 " RINGLET_WORLD_SIZE=" + std::to_string(kHosts) + " RINGLET_COORDINATOR=" + network.host(0).address() +
                                 ":4711; exec \"$PARTS_RANK\" \"$STOP\"";
      Variables variables{{"PARTS_RANK", RINGLET_PARTS_RANK},
                          {"STOP", directory.path() + "/stop"},
                          {"XDG_RUNTIME_DIR", directory.path()},
                          {"RINGLET_INTERFACES", "eth0"},
                          {"RINGLET_TOKEN", "the-token-of-this-test-alone"},
                          {"RINGLET_PARTS_WINDOW_MS", "1000"}};
      variables.insert(variables.end(), settings.begin(), settings.end());
      ranks.push_back(network.host(rank).run(script_arguments({"-n", "1", "--no-prefix", "--linger", "0"}, script), variables));
    }
  }
  /// Waits until all ranks have said this of the group of all ranks, and of the other one, in which their order is reversed.
  void wait_for_all(const std::string& algorithm) {
    for (const auto& rank : ranks)
      for (const char* group : {"world: ", "reversed: "})
        rank->wait_for_stdout(group + std::string("3 native ranks: large all-reduces ") + algorithm + "\n");
  }
  std::string status() const { return network.host(1).run({"status"}, {{"XDG_RUNTIME_DIR", directory.path()}})->finish().out; }
  void stop() {
    std::ofstream(directory.path() + "/stop") << "now";
    for (const auto& rank : ranks) {
      const Outcome outcome = rank->finish();
      CAPTURE(outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
      CHECK_THAT(outcome.out, Contains("all is right"));
    }
  }

  const NetworkOfHosts& network;
  TemporaryDirectory directory;
  std::vector<std::unique_ptr<CommandProcess>> ranks;
};

/// Makes a host slow, and waits until all ranks have taken its parts from it.
void turn_slow(const Training& training, const std::string& order) {
  set_rate(training.network.host(kSlow), "8mbit");
  const std::string takes = "it owns no part of an all-reduce now";
  training.ranks[0]->wait_for_stderr(takes);
  const std::string by = order + "by hub; rank ";
  for (const auto& rank : training.ranks)
    for (const char* group : {"world: ", "reversed: "})
      rank->wait_for_stdout(group + std::string("3 native ranks: large all-reduces ") + by);
  for (const auto& rank : training.ranks) {
    CHECK_THAT(rank->out(), Contains(by + "2 has 0.") && Contains(by + "0 has 0."));
    CHECK(count_lines_with(rank->err(), takes) == (rank == training.ranks[0] ? 1 : 0));
  }
  CHECK_THAT(training.ranks[0]->err(), Contains("ringlet: rank 0: rank 2's links carry ") && Contains(" Mbit/s, which were "));
  CHECK_THAT(training.status(), Contains("; rank 2 has 0.") && Contains("and owns no part; the last change: rank 2's links carry "));
}

}  // namespace

TEST_CASE("a host that turns slow while ranks train loses its parts on all of them, which is told, and so is that it is fast again") {
  if (const auto reason = NetworkOfHosts::enter()) {
    std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
    return;
  }
  const NetworkOfHosts network(kHosts);
  set_all_rates(network);
  Training training(network, {{"RINGLET_PARTS", "measured"}});
  training.wait_for_all("by ring");
  turn_slow(training, "");

  set_rate(network.host(kSlow), "40mbit");
  // How fast it is found to be depends on the processors, too, that all hosts share here.
  CommandProcess& first = *training.ranks[0];
  wait_for_condition([&] {
    first.read_what_came();
    return has_faster_change(first.err());
  });
  training.stop();
}

TEST_CASE("unless told otherwise, ranks whose sums have one order take its parts from a host that turns slow") {
  if (const auto reason = NetworkOfHosts::enter()) {
    std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
    return;
  }
  const NetworkOfHosts network(kHosts);
  set_all_rates(network);
  Training training(network, {{"RINGLET_ORDER", "rank"}});
  training.wait_for_all("in rank order, by direct");
  turn_slow(training, "in rank order, ");
  training.stop();
}
