#include "native/reachability.hpp"

#include <catch2/catch.hpp>

using namespace ringlet;
using Catch::Matchers::Contains;
using uv::ListedInterface;

namespace {

IpAddress v4(unsigned char a, unsigned char b, unsigned char c, unsigned char d) {
  const unsigned char bytes[]{a, b, c, d};
  return *IpAddress::from_bytes(std::as_bytes(std::span(bytes)));
}

IpAddress v6(unsigned char first, unsigned char second, unsigned char last) {
  unsigned char bytes[16]{first, second};
  bytes[15] = last;
  return *IpAddress::from_bytes(std::as_bytes(std::span(bytes)));
}

std::vector<ListedInterface> machine() {
  return {{"lo", 1, true, {v4(127, 0, 0, 1)}},
          {"lan0", 2, false, {v4(192, 168, 1, 7), v6(0xfe, 0x80, 7), v6(0xfd, 0, 7), v6(0xfd, 0, 8)}},
          {"air0", 3, false, {v4(192, 168, 2, 7)}},
          {"docker0", 4, false, {v4(172, 17, 0, 1)}}};
}

struct Settings {
  std::string listen{}, advertise{}, interfaces{};
};

MeetingOptions reach(const Settings& settings, int rank = 1, const std::string& coordinator = "192.168.1.1") {
  const auto setting = [](const char* name, const std::string& value) {
    return value.empty() ? std::nullopt : std::optional(native::Setting{name, value});
  };
  MeetingOptions meeting;
  meeting.coordinator = {coordinator, 5000};
  native::make_reachable({setting("RINGLET_LISTEN", settings.listen), setting("RINGLET_ADVERTISE", settings.advertise),
                          setting("RINGLET_INTERFACES", settings.interfaces)},
                         machine(), rank, meeting);
  return meeting;
}

using Hosts = std::vector<std::string>;

Hosts hosts(const MeetingOptions& meeting) {
  Hosts result;
  for (const auto& endpoint : meeting.endpoints)
    result.push_back(endpoint.host + (endpoint.port > 0 ? ":" + std::to_string(endpoint.port) : ""));
  return result;
}

}  // namespace

TEST_CASE("a rank offers what others can reach: no loopback, no containers, nothing that means something else on another machine") {
  const auto meeting = reach({});
  CHECK(hosts(meeting) == Hosts{"192.168.1.7", "fd00::7", "192.168.2.7"});
  CHECK(meeting.endpoints.front().interface == "lan0");
  CHECK_FALSE(meeting.listen_at);
  CHECK(meeting.also_at == Hosts{"::"});
  CHECK_FALSE(meeting.only_endpoints);
}

TEST_CASE("rank 0 listens at the coordinator's address and at its others") {
  const auto meeting = reach({}, 0, "192.168.1.7");
  CHECK_FALSE(meeting.listen_at);
  CHECK(meeting.also_at == Hosts{"fd00::7", "192.168.2.7"});
  CHECK(hosts(meeting).size() == 3);
}

TEST_CASE("where the coordinator is on the loopback nothing is offered, and nothing else listens") {
  for (const int rank : {0, 1}) {
    const auto meeting = reach({}, rank, "127.0.0.1");
    CHECK(meeting.endpoints.empty());
    CHECK(meeting.also_at.empty());
    CHECK_FALSE(meeting.listen_at);
  }
}

TEST_CASE("interfaces can be named or left out") {
  CHECK(hosts(reach({.interfaces = "air0"})) == Hosts{"192.168.2.7"});
  CHECK(reach({.interfaces = "air0"}).listen_at == Address{"192.168.2.7", 0});
  CHECK(hosts(reach({.interfaces = "!lan0"})) == Hosts{"192.168.2.7"});
  CHECK(hosts(reach({.interfaces = "docker0,air0"})) == Hosts{"192.168.2.7", "172.17.0.1"});
  CHECK(reach({.interfaces = "air0"}, 0).also_at == Hosts{"192.168.2.7"});
  CHECK(reach({.interfaces = "!docker9"}).only_endpoints);
  CHECK_THROWS_WITH(reach({.interfaces = "eth9"}),
                    Contains("RINGLET_INTERFACES is 'eth9'") && Contains("no interface 'eth9'") && Contains("lo, lan0, air0, docker0"));
  for (const char* nothing : {"lo", "!lan0,!air0"})
    CHECK_THROWS_WITH(reach({.interfaces = nothing}), Contains(nothing) && Contains("leaves no interface") && Contains("docker0"));
}

TEST_CASE("listening and what is told of it can be set apart") {
  const auto behind = reach({.listen = "0.0.0.0:6000", .advertise = "203.0.113.7:7000,relay.example"});
  CHECK(behind.listen_at == Address{"0.0.0.0", 6000});
  CHECK(hosts(behind) == Hosts{"203.0.113.7:7000", "relay.example"});
  CHECK(behind.only_endpoints);
  CHECK(hosts(reach({.listen = "192.168.2.7"})) == Hosts{"192.168.2.7"});
  CHECK(hosts(reach({.listen = "0.0.0.0"})) == Hosts{"192.168.1.7", "192.168.2.7"});
  CHECK(hosts(reach({.listen = "::"})) == Hosts{"fd00::7"});
  CHECK(reach({.listen = "[fd00::7]:80"}).listen_at == Address{"fd00::7", 80});
  CHECK(reach({.listen = "127.0.0.1"}).endpoints.empty());
  CHECK_THROWS_WITH(reach({.listen = "a b"}), Contains("RINGLET_LISTEN is 'a b'") && Contains("host:port"));
  CHECK_THROWS_WITH(reach({.advertise = "10.0.0.1:99999"}), Contains("RINGLET_ADVERTISE") && Contains("10.0.0.1:99999"));
  CHECK_THROWS_WITH(reach({.advertise = ","}), Contains("RINGLET_ADVERTISE is ','"));
}

TEST_CASE("in a later world a rank offers where it listens, whatever the coordinator's address") {
  const auto later = [](const Hosts& at, const native::ReachSettings& settings = {}) {
    MeetingOptions meeting;
    native::meet_at({"192.168.1.1", 4000}, settings, machine(), at, 1, meeting);
    return meeting;
  };
  CHECK(hosts(later({"127.0.0.1"})) == Hosts{"127.0.0.1"});
  CHECK(later({"127.0.0.1"}).only_endpoints);
  CHECK(hosts(later({"192.168.2.7"})) == Hosts{"192.168.2.7"});
  CHECK(hosts(later({"0.0.0.0", "::"})) == Hosts{"192.168.1.7", "fd00::7", "192.168.2.7"});
  CHECK_FALSE(later({"0.0.0.0", "::"}).only_endpoints);
  const native::Setting told{"RINGLET_ADVERTISE", "203.0.113.7"};
  CHECK(hosts(later({"127.0.0.1"}, {std::nullopt, told, std::nullopt})) == Hosts{"203.0.113.7"});
}
