#include <catch2/catch.hpp>

#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/hosts/hosts_launcher.hpp"
#include "tools/launch/hosts/meeting_place.hpp"
#include "tools/launch/launch_error.hpp"

using namespace ringlet::launch;
using Catch::Matchers::Contains;

namespace {

template <class Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const LaunchError& error) {
    CHECK(error.exit_code() == 2);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a list of hosts has users and numbers of ranks") {
  const auto hosts = parse_host_list("alpha,user@beta:3,10.0.0.7:1,[fe80::7]:2,fd00::1");
  REQUIRE(hosts.size() == 5);
  CHECK(hosts[0].ssh == "alpha");
  CHECK_FALSE(hosts[0].slots);
  CHECK(hosts[1].ssh == "user@beta");
  CHECK(hosts[1].name() == "beta");
  CHECK(hosts[1].slots == 3);
  CHECK(hosts[2].slots == 1);
  CHECK(hosts[3].ssh == "fe80::7");
  CHECK(hosts[3].slots == 2);
  CHECK(hosts[4].ssh == "fd00::1");
  CHECK_FALSE(hosts[4].slots);
}

TEST_CASE("a wrong entry is named") {
  const auto refusal = [](const char* text) { return refusal_of([&] { parse_host_list(text); }); };
  CHECK_THAT(refusal(""), Contains("no name"));
  CHECK_THAT(refusal("a,,b"), Contains("--hosts 'a,,b': a host has no name"));
  CHECK_THAT(refusal("a,b:0"), Contains("b:0") && Contains("from 1 to"));
  CHECK_THAT(refusal("a:x"), Contains("'x' is not a number of ranks") && Contains("--ssh"));
  CHECK_THAT(refusal("-oProxyCommand=x"), Contains("does not begin with '-'"));
  CHECK_THAT(refusal("a b"), Contains("white space"));
}

TEST_CASE("hostfiles are read in Ringlet's form, both of MLX's, and as lines") {
  const auto own = parse_hostfile(
      "f", R"([{"ssh": "a", "ips": ["10.0.0.1", "10.1.0.1"], "slots": 2, "env": {"K": "V"}, "cwd": "/srv"}, {"ssh": "u@b"}])");
  REQUIRE(own.size() == 2);
  CHECK(own[0].ips == std::vector<std::string>{"10.0.0.1", "10.1.0.1"});
  CHECK(own[0].slots == 2);
  CHECK(own[0].environment == std::vector<ringlet::job::Variable>{{"K", "V"}});
  CHECK(own[0].directory == "/srv");
  CHECK(own[1].ssh == "u@b");

  const auto list =
      parse_hostfile("f", R"([{"ssh": "a", "ips": ["10.0.0.1"], "rdma": [null, "rdma_en5"]}, {"ssh": "b", "ips": [], "rdma": []}])");
  REQUIRE(list.size() == 2);
  CHECK(list[0].ips.front() == "10.0.0.1");

  const auto object = parse_hostfile("f", R"({"backend": "ring", "envs": ["A=1", "B=x=y"], "hosts": [{"ssh": "a", "ips": ["10.0.0.1"]}]})");
  REQUIRE(object.size() == 1);
  CHECK(object[0].environment == std::vector<ringlet::job::Variable>{{"A", "1"}, {"B", "x=y"}});

  const auto lines = parse_hostfile("f", "# two\nalpha slots=2\n\n  beta # the slow one\n");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].slots == 2);
  CHECK(lines[1].ssh == "beta");
}

TEST_CASE("a wrong hostfile is told with file, line or entry, and what was expected") {
  const auto refusal = [](const char* text) { return refusal_of([&] { parse_hostfile("hosts.json", text); }); };
  CHECK_THAT(refusal(""), Contains("hosts.json: names no host"));
  CHECK_THAT(refusal("[]"), Contains("names no host"));
  CHECK_THAT(refusal("[\n{\"ssh\": \"a\",\n]"), Contains("hosts.json: is no JSON") && Contains("line 3"));
  CHECK_THAT(refusal(R"([{"ssh": "a"}, {"ips": []}])"), Contains("hosts.json entry 2: \"ssh\" is missing"));
  CHECK_THAT(refusal(R"([{"ssh": 7}])"), Contains("entry 1: \"ssh\" is 7"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "ips": "b"}])"), Contains("a list of addresses is expected"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "slots": 0}])"), Contains("from 1 to"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "slots": -2}])"), Contains("-2 ranks on one host"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "slots": 99999999999999999}])"), Contains("from 1 to"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "slots": "2"}])"), Contains("a whole number is expected"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "env": ["K"]}])"), Contains("write it as NAME=VALUE"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "colour": "red"}])"), Contains("\"colour\" is not known") && Contains("slots"));
  CHECK_THAT(refusal(R"([["10.0.0.1:5000"]])"), Contains("RINGLET_HOSTFILE"));
  CHECK_THAT(refusal(R"({"backend": "ring"})"), Contains("\"hosts\" is missing"));
  CHECK_THAT(refusal("alpha\nbeta slots=two\n"), Contains("hosts.json line 2: 'slots=two' is not understood"));
  CHECK_THAT(refusal("alpha slots=99999\n"), Contains("line 1"));
  CHECK_THAT(refusal_of([] { read_hostfile("no/such/file"); }),
             Contains("--hostfile no/such/file: it cannot be read: No such file") && Contains("check the path"));
  CHECK_THAT(refusal_of([] { read_hostfile("/"); }), Contains("--hostfile /: it cannot be read: Is a directory"));
}

TEST_CASE("the ranks meet where the others can reach the first host") {
  const auto host = [](const char* ssh, ringlet::job::Offer offer = {}) {
    Host made;
    made.ssh = ssh;
    return ReachedHost{made, std::move(offer)};
  };
  const auto seen = [](const char* launcher, const char* own) {
    ringlet::job::Offer offer;
    offer.launcher_address = launcher;
    offer.own_address = own;
    return offer;
  };
  const ReachedHost here = host("localhost", seen("192.0.2.7", "192.0.2.8"));  // its user came by ssh
  const ReachedHost beta = host("user@beta", seen("10.0.0.1", "10.0.0.2"));
  const ReachedHost local = host("gamma", seen("fe80::1%eth0", "fe80::2%eth0"));
  const auto choose = [](std::vector<ReachedHost> hosts) { return choose_meeting_host(hosts); };
  CHECK(choose({here}) == "127.0.0.1");
  CHECK(choose({here, host("::1")}) == "127.0.0.1");
  CHECK(choose({here, beta}) == "10.0.0.1");
  CHECK(choose({here, local, beta}) == "10.0.0.1");
  CHECK(choose({here, local}) == own_host_name());
  CHECK(choose({beta, here}) == "10.0.0.2");
  CHECK(choose({local, here}) == "gamma");
  // A program in ssh's place that sets no SSH_CONNECTION.
  CHECK(choose({host("me@10.0.0.2"), host("10.0.0.3")}) == "10.0.0.2");
  CHECK(choose({host("beta")}) == "beta");
  CHECK(choose({host("me@127.0.0.2"), here}) == "127.0.0.1");
  ReachedHost told = beta;
  told.host.ips = {"10.9.0.2", "10.0.0.2"};
  CHECK(choose({told, here}) == "10.9.0.2");

  CHECK(listen_for({"10.0.0.1", 5000}).host == "0.0.0.0");
  CHECK(listen_for({"alpha", 5000}).port == 5000);
  CHECK(listen_for({"fd00::1", 0}).host == "::");
  CHECK(listen_for({"::1", 0}).host == "::1");
  CHECK(listen_for({"127.0.0.1", 0}).host == "127.0.0.1");
}

TEST_CASE("ranks meet at the address of the host where they do, also where earlier ones are lost") {
  HostsPlan plan;
  plan.hosts = parse_hostfile(
      "hosts", R"([{"ssh": "a", "ips": ["10.0.0.1"]}, {"ssh": "b", "ips": ["10.0.0.2"]}, {"ssh": "c", "ips": ["10.0.0.3"]}])");
  const auto reached_as = [&](const std::vector<std::size_t>& machines) {
    std::vector<ringlet::job::Participant> participants;
    for (const std::size_t machine : machines) participants.push_back({machine, {}});
    return choose_meeting(plan, participants).reached_as;
  };
  CHECK(reached_as({0, 1, 2}) == "10.0.0.1");
  CHECK(reached_as({1, 2}) == "10.0.0.2");
  CHECK(reached_as({2, 0}) == "10.0.0.3");
  // It is said of the first host of all.
  plan.coordinator = ringlet::Address{"192.0.2.1", 0};
  CHECK(reached_as({0, 2}) == "192.0.2.1");
  CHECK(reached_as({2}) == "10.0.0.3");
}
