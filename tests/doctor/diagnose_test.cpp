#include "tools/doctor/diagnose.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace ringlet;
using namespace ringlet::doctor;
using Catch::Contains;

namespace {

PathFacts path(std::string host, Reach reach = Reach::good, std::string text = "") {
  PathFacts facts{{std::move(host), 4000}, "eth0", reach, std::move(text), {}, 0, {}};
  if (reach == Reach::good) {
    facts.round_trip = Duration::microseconds(300);
    facts.bytes_per_second = 100e6;
  }
  return facts;
}

MachineFacts machine(std::string name, std::vector<PathFacts> paths = {path("10.0.0.2")}) {
  MachineFacts facts{7, std::move(name), "1.2.3", "home", true, 4000};
  facts.paths = std::move(paths);
  return facts;
}

/// Returns the facts of a machine beside one other, with nothing wrong.
Facts healthy() {
  Facts facts;
  facts.name = "here";
  facts.version = "1.2.3";
  facts.group = "home";
  facts.has_token = true;
  facts.discovery_port = 47174;
  facts.heard_itself = true;
  facts.interfaces = {{"lo", {"127.0.0.1"}, true, false, false, 65536}, {"eth0", {"10.0.0.1"}, false, false, true, 1500}};
  facts.machines = {machine("attic")};
  return facts;
}

PeerFacts silent_peer(Reach reach, bool neighbour) {
  PeerFacts peer{"10.0.0.9", false, {}, neighbour};
  peer.knock.emplace();
  peer.knock->to = {"10.0.0.9", 47174};
  peer.knock->reach = reach;
  peer.knock->text = "No route to host";
  return peer;
}

struct Fault {
  const char* code;
  Severity severity;
  void (*inject)(Facts&);
  const char* next;  // part of the advice
};

const Fault kFaults[] = {
    {"no-interface", Severity::error, [](Facts& facts) { facts.interfaces.resize(1); }, "connect the cable"},
    {"no-interface", Severity::error, [](Facts& facts) { facts.interfaces[1].leads_inside = true; }, "connect the cable"},
    {"multicast-off", Severity::warning, [](Facts& facts) { facts.interfaces[1].multicast = false; }, "ip link set dev eth0 multicast on"},
    {"deaf", Severity::error, [](Facts& facts) { facts.heard_itself = false; }, "ufw allow 47174/udp"},
    {"deaf", Severity::error, [](Facts& facts) { facts.heard_itself = false, facts.macos = true; }, "Local Network"},
    {"nobody", Severity::warning, [](Facts& facts) { facts.machines.clear(); }, "ringlet up --group home"},
    {"peer-does-not-answer", Severity::error, [](Facts& facts) { facts.peers = {silent_peer(Reach::refused, true)}; },
     "on 10.0.0.9: `ringlet up"},
    {"isolated", Severity::error, [](Facts& facts) { facts.peers = {silent_peer(Reach::unreachable, true)}; }, "client isolation"},
    {"isolated", Severity::error, [](Facts& facts) { facts.peers = {silent_peer(Reach::silent, true)}; }, "client isolation"},
    {"unknown-host", Severity::error,
     [](Facts& facts) { facts.peers = {silent_peer(Reach::unreachable, false)}, facts.peers[0].unknown = true; }, "check the name"},
    {"no-interface", Severity::error, [](Facts& facts) { facts.interfaces[1].named = true, facts.interfaces[1].addresses.clear(); },
     "connect the cable"},
    {"unreachable", Severity::error, [](Facts& facts) { facts.peers = {silent_peer(Reach::silent, false)}; }, "ip route get 10.0.0.9"},
    {"duplicate-name", Severity::warning, [](Facts& facts) { facts.machines.push_back(facts.machines[0]); }, "--name OTHER_NAME"},
    {"other-group", Severity::error, [](Facts& facts) { facts.machines[0].group = "Home"; }, "--group home"},
    {"other-group", Severity::error, [](Facts& facts) { facts.machines[0].group = "hom"; }, "--group home"},
    {"other-group", Severity::error, [](Facts& facts) { facts.machines[0].group = "hoime"; }, "--group home"},
    {"other-group", Severity::error, [](Facts& facts) { facts.machines[0].group = "hone"; }, "--group home"},
    {"nobody-in-group", Severity::warning, [](Facts& facts) { facts.machines[0].group = "attic"; }, "ringlet doctor --group attic"},
    {"no-token", Severity::warning,
     [](Facts& facts) {
       facts.has_token = false;
       facts.machines.push_back(facts.machines[0]);
       facts.machines[0].group = "other";
     },
     "ringlet pair --group home"},
    {"multicast-blocked", Severity::warning, [](Facts& facts) { facts.machines[0].by_multicast = false; }, "--peer 10.0.0.2"},
    {"version-differs", Severity::error, [](Facts& facts) { facts.machines[0].version = "1.2.4"; }, "ringlet version"},
    {"clock", Severity::warning, [](Facts& facts) { facts.machines[0].clock_ahead = Duration::seconds(-60); }, "set-ntp"},
    {"no-agent", Severity::note, [](Facts& facts) { facts.machines[0].port = 0, facts.machines[0].paths.clear(); },
     "ringlet pair --group home --join"},
    {"no-token", Severity::warning, [](Facts& facts) { facts.has_token = false; }, "ringlet pair --group home --join"},
    {"token-differs", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::token_differs)}; },
     "ringlet pair --group home --join --replace"},
    {"not-trusted", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::not_trusted, "why")}; },
     "ringlet machines --group home"},
    {"incompatible", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::incompatible, "why")}; },
     "same version"},
    {"port-closed", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::refused)}; }, "--listen"},
    {"rank-ports", Severity::error,
     [](Facts& facts) { facts.matrix = {{"here", {{"attic", Duration::milliseconds(1), 1e8, "", {47'175, "timed out"}}}}}; },
     "on attic, as its firewall is: `sudo ufw allow 47174/udp && sudo ufw allow 47174:47238/tcp`"},
    {"rank-ports", Severity::error,
     [](Facts& facts) {
       facts.firewall_tool = "nft";
       facts.matrix = {{"attic", {{"here", Duration::milliseconds(1), 1e8, "", {47'175, "timed out"}}}}};
     },
     "`sudo nft insert rule inet filter input udp dport 47174 accept"},
    {"way-blocked", Severity::error, [](Facts& facts) { facts.matrix = {{"attic", {{"cellar", {}, 0, "no answer"}}}}; }, "firewall-cmd"},
    {"firewall", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::silent, "no answer")}; },
     "ufw allow"},
    {"breaks-off", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::broken, "closed")}; },
     "ss -ltnp sport = 4000"},
    {"no-route", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::unreachable)}; },
     "ip route get 10.0.0.2"},
    {"mtu", Severity::error, [](Facts& facts) { facts.machines[0].paths = {path("10.0.0.2", Reach::stalled)}; }, "eth0 mtu 1400"},
    {"slow-link", Severity::warning, [](Facts& facts) { facts.machines[0].paths[0].bytes_per_second = 1e6; }, "cable"},
    {"slow-link", Severity::warning, [](Facts& facts) { facts.machines[0].paths[0].round_trip = Duration::milliseconds(80); }, "cable"},
};

}  // namespace

TEST_CASE("where nothing is wrong nothing is found, on named interfaces, too") {
  Facts facts = healthy();
  CHECK(diagnose(facts).empty());
  facts.interfaces[0].named = true;
  facts.interfaces[1].addresses.clear();
  CHECK(diagnose(facts).empty());
}

TEST_CASE("where neither side has a token, both are told") {
  Facts facts = healthy();
  facts.has_token = false;
  facts.machines[0].port = 0;
  facts.machines[0].paths.clear();
  const auto findings = diagnose(facts);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "no-token");
  CHECK(findings[1].code == "no-agent");
}

TEST_CASE("each fault is found, alone, with what to do") {
  for (const Fault& fault : kFaults) {
    Facts facts = healthy();
    fault.inject(facts);
    const std::vector<Finding> findings = diagnose(facts);
    CAPTURE(fault.code, fault.next);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].code == fault.code);
    CHECK(findings[0].severity == fault.severity);
    CHECK_FALSE(findings[0].text.empty());
    CHECK_THAT(findings[0].next, Contains(fault.next));
  }
}

TEST_CASE("a way that fails beside one that works is no error") {
  Facts facts = healthy();
  facts.machines[0].paths.push_back(path("10.1.0.2", Reach::silent));
  facts.machines[0].paths.push_back(path("10.2.0.2"));
  facts.machines[0].paths.back().bytes_per_second = 1e6;
  const auto findings = diagnose(facts);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "firewall");
  CHECK(findings[0].severity == Severity::warning);
  CHECK(findings[1].code == "slow-path");
  CHECK(findings[1].severity == Severity::note);
}

TEST_CASE("other groups are none of our business, unless their name is nearly ours") {
  Facts facts = healthy();
  facts.machines.push_back(machine("stranger", {path("10.0.0.3", Reach::token_differs)}));
  facts.machines[1].group = "office";
  facts.machines[1].version = "0.1";
  CHECK(diagnose(facts).empty());
  facts.machines[1].group = "home2";
  const auto findings = diagnose(facts);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::warning);  // the group has another machine
}

TEST_CASE("the worst comes first, and what holds for a machine is said once") {
  Facts facts = healthy();
  facts.machines[0].by_multicast = false;
  facts.machines[0].paths = {path("10.0.0.2", Reach::token_differs), path("10.1.0.2", Reach::token_differs)};
  const auto findings = diagnose(facts);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "token-differs");
  CHECK(findings[1].code == "multicast-blocked");
}
