// Tests which interface the ranks' links take, on hosts with two: eth0 in 10.77.0.0/24, eth1 in 10.78.0.0/24.
#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/process/network_of_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

/// Runs a short benchmark with one rank on each host and returns what each wrote. `more` is what each rank has in its environment besides.
std::vector<std::string> measure_on(const NetworkOfHosts& network, int hosts, const std::string& coordinator,
                                    const std::vector<Environment>& more = {}) {
  std::vector<std::unique_ptr<CommandProcess>> ranks;
  for (int rank = 0; rank < hosts; ++rank) {
    Environment environment{{"RINGLET_RANK", std::to_string(rank)},
                            {"RINGLET_WORLD_SIZE", std::to_string(hosts)},
                            {"RINGLET_COORDINATOR", coordinator},
                            {"RINGLET_TOKEN", "a token of these hosts"},
                            {"RINGLET_CONNECT_TIMEOUT_MS", "20000"}};
    if (!more.empty())
      environment.insert(environment.end(), more[static_cast<std::size_t>(rank)].begin(), more[static_cast<std::size_t>(rank)].end());
    ranks.push_back(network.host(rank).run({"bench", "--sizes", "4", "--seconds", "0.05"}, environment));
  }
  std::vector<std::string> written;
  for (int rank = 0; rank < hosts; ++rank) {
    const Outcome outcome = ranks[static_cast<std::size_t>(rank)]->finish();
    INFO("rank " << rank << ": " << outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    written.push_back(outcome.out);
  }
  return written;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Checks that each rank names all its links, and that all of them are of this network.
void check_links(const std::vector<std::string>& written, const std::string& network, const std::string& interface) {
  for (std::size_t rank = 0; rank < written.size(); ++rank) {
    INFO(written[rank]);
    for (std::size_t peer = 0; peer < written.size(); ++peer)
      if (peer != rank) CHECK_THAT(written[rank], Contains("link " + std::to_string(rank) + " - " + std::to_string(peer) + ": " + network));
    CHECK(count_of(written[rank], "(" + interface + ")") == 2 * (written.size() - 1));
  }
}

/// Adds a bridge as a container engine does, with the same address on every machine.
void add_docker(const NetworkHost& host) {
  host.ip("link add docker0 type bridge");
  host.ip("addr add 172.17.0.1/16 dev docker0");
  host.ip("link add veth1 type veth peer name inside1");
  host.ip("link set veth1 master docker0 up");
  host.ip("link set inside1 up");
  host.ip("link set docker0 up");
}

}  // namespace

TEST_CASE("every pair of hosts takes the fast interface, although the coordinator is named by the slow one") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  for (int host = 0; host < 3; ++host) {
    network.host(host).command("tc qdisc replace dev eth0 root tbf rate 10mbit burst 16kb latency 100ms");
    add_docker(network.host(host));
  }
  const auto written = measure_on(network, 3, "10.77.0.1:7000");
  check_links(written, "10.78.0.", "eth1");
  for (const auto& text : written) CHECK_THAT(text, !Contains("172.17.") && Contains("Mbit/s") && Contains("the best of 2"));
  std::printf("%s", written[0].c_str());
}

TEST_CASE("an interface that drops everything keeps no one from meeting, and one can be left out") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Environment without_eth1{{"RINGLET_INTERFACES", "!eth1"}};
  const auto chosen = measure_on(network, 2, "10.78.0.1:7000", {without_eth1, {{"RINGLET_INTERFACES", "eth0"}}});
  check_links(chosen, "10.77.0.", "eth0");
  // The host's port leaves the bridge, so nothing that it sends arrives.
  shell("PATH=$PATH:/usr/sbin:/sbin ip link set h2e1 nomaster");
  check_links(measure_on(network, 2, "10.77.0.1:7000"), "10.77.0.", "eth0");
}

TEST_CASE("hosts behind addresses that are not their interfaces' own meet by what they advertise") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  std::vector<Environment> settings;
  for (int host = 0; host < 3; ++host) {
    const std::string outside = "10.99.0." + std::to_string(host + 1);
    network.host(host).ip("route add local " + outside + " dev lo");
    for (int other = 0; other < 3; ++other)
      if (other != host) network.host(other).ip("route add " + outside + " via " + network.host(host).address(1));
    settings.push_back({{"RINGLET_LISTEN", "0.0.0.0:" + std::to_string(7000 + host)}, {"RINGLET_ADVERTISE", outside}});
  }
  for (const auto& text : measure_on(network, 3, "10.99.0.1:7000", settings)) CHECK_THAT(text, !Contains("10.77."));
}
