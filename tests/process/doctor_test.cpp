#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/process/forged_beacons.hpp"
#include "tests/process/network_of_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

using Process = std::unique_ptr<CommandProcess>;
using Variables = std::vector<std::pair<std::string, std::string>>;

const Variables kToken{{"RINGLET_TOKEN", "the token of this test"}};
const Variables kOtherToken{{"RINGLET_TOKEN", "another one of this test"}};

constexpr int kWarnings = 3, kErrors = 4;

bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

Process start_up(const NetworkHost& host, const Variables& variables = kToken, const std::string& name = "") {
  Process up = host.run({"up", "--group", "home", "--name", name.empty() ? host.name() : name}, variables);
  up->wait_for_stderr("is up");
  return up;
}

struct Report {
  int exit_code = -1;
  Json json;
  const Json* find(const std::string& code) const {
    for (const Json& finding : json["findings"])
      if (finding["code"] == code) return &finding;
    return nullptr;
  }
};

Report examine(const NetworkHost& host, std::vector<std::string> more = {}, const Variables& variables = kToken) {
  std::vector<std::string> arguments{"doctor", "--json"};
  if (std::find(more.begin(), more.end(), "--group") == more.end()) more.insert(more.end(), {"--group", "home"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Process process = host.run(std::move(arguments), variables);
  process->close_stdin();
  const Outcome outcome = process->finish();
  CAPTURE(outcome.err, outcome.out);
  Report report{outcome.exit_code, Json::parse(outcome.out)};
  std::printf("  findings:");
  for (const Json& finding : report.json["findings"]) std::printf(" %s", finding["code"].get<std::string>().c_str());
  std::printf("\n");
  return report;
}

/// Requires that the finding is there, and that the exit code is that of the worst finding.
void require(const Report& report, const char* code, const std::string& subject, int exit_code, const std::string& next) {
  CAPTURE(code, report.json.dump(1));
  const Json* finding = report.find(code);
  REQUIRE(finding != nullptr);
  CHECK((*finding)["subject"] == subject);
  CHECK_THAT((*finding)["next"].get<std::string>(), Contains(next));
  CHECK(report.exit_code == exit_code);
}

/// Removes IPv6, on which each fault would have to be made once more, and the second network.
void keep_one_way(const NetworkHost& host) {
  host.ip("link set eth1 down");
  host.ip("-6 addr flush dev eth0");
}

/// Makes a firewall on the host that drops these packets.
void drop(const NetworkHost& host, const std::string& what) {
  host.command("nft add table inet wall");
  host.command("nft 'add chain inet wall in { type filter hook input priority 0; }'");
  host.command("nft add rule inet wall in " + what + " drop");
}

}  // namespace

TEST_CASE("doctor finds nothing wrong where nothing is, and measures every way") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  const Process one = start_up(network.host(0)), two = start_up(network.host(1));
  const Report report = examine(network.host(2));
  CAPTURE(report.json.dump(1));
  CHECK(report.json["findings"].empty());
  CHECK(report.exit_code == 0);
  REQUIRE(report.json["machines"].size() == 2);
  for (const Json& machine : report.json["machines"]) {
    CHECK(machine["paths"].size() >= 2);
    for (const Json& path : machine["paths"]) {
      CHECK(path["reach"] == "good");
      CHECK(path["round_trip_ms"] > 0);
      CHECK(path["bytes_per_second"] > 0);
    }
  }
  // The matrix has the links from here to both machines, and those between the two in both directions.
  REQUIRE(report.json["matrix"].size() == 3);
  for (const Json& row : report.json["matrix"]) {
    CHECK(row["to"].size() == (row["from"] == "host1" || row["from"] == "host2" ? 1 : 2));
    for (const Json& cell : row["to"]) CHECK(cell["bytes_per_second"] > 0);
  }

  const Process text = network.host(2).run({"doctor", "--group", "home"}, kToken);
  text->close_stdin();
  const Outcome outcome = text->finish();
  CHECK_THAT(outcome.out, Contains("host1") && Contains("MB/s") && Contains("Nothing is wrong.") && !Contains("\x1b"));
  CHECK_THAT(outcome.out + outcome.err, !Contains("the token of this test"));
}

TEST_CASE("doctor: multicast is blocked") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  network.block_multicast();
  const Process up = start_up(network.host(0));
  const std::string address = network.host(0).address();
  require(examine(network.host(1), {"--peer", address}), "multicast-blocked", "host1", kWarnings, "--peer " + address);
  require(examine(network.host(1)), "nobody", "", kWarnings, "--peer HOST");
}

TEST_CASE("doctor: tokens differ, or are missing") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Process up = start_up(network.host(0));
  require(examine(network.host(1), {}, kOtherToken), "token-differs", "host1", kErrors, "ringlet pair --group home");
  require(examine(network.host(1), {}, {}), "no-token", "", kWarnings, "ringlet pair --group home --join");
  up->send(SIGTERM);
  CHECK(up->finish().exit_code == 0);
  const Process bare = start_up(network.host(0), {});
  require(examine(network.host(1)), "no-agent", "host1", 0, "ringlet pair");
}

TEST_CASE("doctor: names are doubled, a group's name is mistyped, a version differs") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  const Process one = start_up(network.host(0)), two = start_up(network.host(1), kToken, "host1");
  require(examine(network.host(2)), "duplicate-name", "host1", kWarnings, "--name OTHER_NAME");
  require(examine(network.host(2), {"--group", "hom"}), "other-group", "host1", kErrors, "on host1: `ringlet up --group hom`");
  const ForgedBeacons old(network.host(1), "museum", "home", "0.0.1");
  require(examine(network.host(2)), "version-differs", "museum", kErrors, "ringlet version");
}

TEST_CASE("doctor: a firewall holds TCP back") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  drop(network.host(0), "meta l4proto tcp");
  const Process up = start_up(network.host(0));
  require(examine(network.host(1)), "firewall", "host1", kErrors, "ufw allow");
}

TEST_CASE("doctor: a firewall lets an agent be reached, but not its ranks") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  drop(network.host(0), "tcp dport != 47174");
  const Process one = start_up(network.host(0)), two = start_up(network.host(1));
  require(examine(network.host(2)), "rank-ports", "host1", kErrors, "47174:47238/tcp");
}

TEST_CASE("doctor: a firewall shuts two other machines off from each other") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  for (int i = 0; i < 3; ++i) keep_one_way(network.host(i));
  drop(network.host(0), "ip saddr " + network.host(1).address() + " tcp flags syn / syn,ack");
  const Process one = start_up(network.host(0)), two = start_up(network.host(1));
  two->wait_for_stdout("host1 appeared");
  const Report report = examine(network.host(2));
  require(report, "way-blocked", "host1", kErrors, "47174:47238/tcp");
  CHECK_THAT(report.find("way-blocked")->at("text").get<std::string>(),
             Contains("host2 does not reach host1 (") && Contains("has not answered"));
}

TEST_CASE("doctor: the access point keeps its clients apart") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  network.isolate();
  const Process up = start_up(network.host(0));
  require(examine(network.host(1), {"--peer", network.host(0).address()}), "isolated", network.host(0).address(), kErrors,
          "client isolation");
}

TEST_CASE("doctor: nothing runs there, or nothing is there") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const std::string address = network.host(0).address();
  require(examine(network.host(1), {"--peer", address}), "peer-does-not-answer", address, kErrors, "on " + address + ": `ringlet up");
  require(examine(network.host(1), {"--peer", "10.99.0.1"}), "unreachable", "10.99.0.1", kErrors, "ip route get 10.99.0.1");
}

TEST_CASE("doctor: large packets are lost") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  for (const int host : {0, 1}) keep_one_way(network.host(host));
  // The firewall does not tell the sender, as routers do not that drop what is too long.
  drop(network.host(0), "meta l4proto tcp meta length gt 1000");
  const Process up = start_up(network.host(0));
  require(examine(network.host(1)), "mtu", "host1", kErrors, "ip link set dev eth0 mtu 1400");
}

TEST_CASE("doctor: a link is slow, and no matter where another is fast") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  for (const int host : {0, 1}) network.host(host).command("tc qdisc add dev eth0 root tbf rate 10mbit burst 16kb latency 200ms");
  const Process up = start_up(network.host(0));
  require(examine(network.host(1)), "slow-path", "host1", 0, "nothing");
  for (const int host : {0, 1}) network.host(host).ip("link set eth1 down");
  require(examine(network.host(1)), "slow-link", "host1", kWarnings, "cable");
}

TEST_CASE("doctor: an interface without multicast, and none at all") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Process up = start_up(network.host(0));
  network.host(1).ip("link set eth1 multicast off");
  require(examine(network.host(1)), "multicast-off", "eth1", kWarnings, "ip link set dev eth1 multicast on");
  for (const char* interface : {"eth0", "eth1"}) network.host(1).ip(std::string("link set ") + interface + " down");
  require(examine(network.host(1)), "no-interface", "", kErrors, "connect");
}

TEST_CASE("doctor refuses what it cannot understand") {
  CommandProcess process({"doctor", "--wait", "-1"});
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--wait"));
}
