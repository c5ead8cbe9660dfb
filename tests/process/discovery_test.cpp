#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/process/network_of_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

using Process = std::unique_ptr<CommandProcess>;

bool networks_are_here() {
  const auto reason = NetworkOfHosts::enter();
  if (reason) std::printf("skipped: no network namespaces on this system: %s\n", reason->c_str());
  return !reason;
}

class Stopwatch {
 public:
  /// Prints how long it took. The reader judges whether that is too long, since a busy machine may take longer.
  void tell(const char* what) const {
    const auto passed = std::chrono::steady_clock::now() - start_;
    std::printf("%s: %lld ms\n", what, static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Process start_up(const NetworkHost& host, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"up", "--group", "home", "--name", host.name()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return host.run(std::move(arguments));
}

Outcome run_on(const NetworkHost& host, std::vector<std::string> arguments) {
  const Process process = host.run(std::move(arguments));
  process->close_stdin();
  return process->finish();
}

void wait_for(CommandProcess& watcher, const NetworkHost& host, const std::string& what) {
  watcher.wait_for_stdout(host.name() + " " + what);
}

}  // namespace

TEST_CASE("hosts on one network find each other, and notice who leaves and who dies") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  const NetworkHost &first = network.host(0), &second = network.host(1), &third = network.host(2);
  const Process one = start_up(first), two = start_up(second);
  wait_for(*one, second, "appeared in group home");
  wait_for(*two, first, "appeared in group home");
  CHECK_THAT(one->err(), Contains("host1 is up in group home"));

  const Stopwatch appearing;
  const Process three = start_up(third);
  wait_for(*one, third, "appeared");
  wait_for(*two, third, "appeared");
  wait_for(*three, first, "appeared");
  wait_for(*three, second, "appeared");
  appearing.tell("a new host seen by all, from the start of its program");

  // The programs in `up` do not show machines of another group; `discover` shows those of all groups.
  const Process stranger = second.run({"up", "--group", "office", "--name", "stranger"});
  const Process watcher = first.run({"discover"});
  for (const char* name : {"host1 appeared", "host2 appeared", "host3 appeared", "stranger appeared"}) watcher->wait_for_stdout(name);

  const Stopwatch leaving;
  two->send(SIGTERM);
  CHECK(two->finish().exit_code == 0);
  wait_for(*one, second, "left");
  wait_for(*three, second, "left");
  leaving.tell("a host that leaves missed by all");
  const Stopwatch dying;
  three->send(SIGKILL);
  wait_for(*one, third, "left");
  dying.tell("a host whose program was killed missed");

  CHECK_THAT(one->out(), !Contains("stranger"));
  watcher->send(SIGINT);
  CHECK(watcher->finish().exit_code == 0);
}

TEST_CASE("discover tells all that a machine says of itself") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Process up = start_up(network.host(0));
  up->wait_for_stderr("is up");
  const Outcome found = run_on(network.host(1), {"discover", "--once", "--json"});
  CAPTURE(found.out, found.err);
  REQUIRE(found.exit_code == 0);
  const Json all = Json::parse(found.out);
  CHECK(all["interfaces"].size() == 2);
  REQUIRE(all["machines"].size() == 1);
  const Json& machine = all["machines"][0];
  CHECK(machine["name"] == "host1");
  CHECK(machine["group"] == "home");
  CHECK(machine["epoch"] == 0);
  CHECK(machine["address"] == network.host(0).address());
  CHECK(machine["devices"][0]["cores"] > 0);
  CHECK(machine["devices"][0]["memory_bytes"] > 0);
  CHECK(machine["devices"][0]["free_memory_bytes"] > 0);
  CHECK_FALSE(machine["devices"][0]["simd"].get<std::string>().empty());
  REQUIRE(machine["interfaces"].size() == 2);
  for (const int interface : {0, 1}) {
    const auto addresses = machine["interfaces"][interface]["addresses"].get<std::vector<std::string>>();
    CHECK_THAT(addresses, Catch::VectorContains(network.host(0).address(interface)));
  }
  const Outcome table = run_on(network.host(1), {"discover", "--once"});
  CHECK_THAT(table.out, Contains("NAME") && Contains("host1") && !Contains("\x1b"));
  const Outcome other_group = run_on(network.host(1), {"discover", "--once", "--wait", "0.5", "--group", "office"});
  CHECK(other_group.exit_code == 3);
}

TEST_CASE("interfaces that come and go are followed") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Process one = start_up(network.host(0)), two = start_up(network.host(1), {"--json"});
  wait_for(*one, network.host(1), "appeared");
  two->wait_for_stdout("\"appeared\"");
  network.host(1).ip("addr add 10.78.0.99/24 dev eth1");
  wait_for(*one, network.host(1), "changed");
  // The first network is cut, and the machines still see each other by the second.
  network.host(0).ip("link set eth0 down");
  two->wait_for_stdout("\"changed\"");
  network.host(1).ip("link set eth1 down");
  wait_for(*one, network.host(1), "left");
  network.host(1).ip("link set eth1 up");
  one->wait_for_stdout("appeared", 2);
}

TEST_CASE("where multicast is blocked, --peer finds") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  network.block_multicast();
  const NetworkHost &first = network.host(0), &second = network.host(1), &third = network.host(2);
  const Process one = start_up(first);
  one->wait_for_stderr("is up");
  const Outcome nobody = run_on(second, {"discover", "--once", "--wait", "1.5"});
  CHECK(nobody.exit_code == 3);
  CHECK(nobody.out.empty());
  CHECK_THAT(nobody.err, Contains("no machine was heard within 1.5 s on eth0, eth1") && Contains("--peer HOST"));
  const Outcome found = run_on(second, {"discover", "--once", "--wait", "1.5", "--peer", first.address()});
  CHECK(found.exit_code == 0);
  CHECK_THAT(found.out, Contains("host1"));

  const Stopwatch appearing;
  const Process two = start_up(second, {"--peer", first.address(1) + ":47174"});
  wait_for(*one, second, "appeared");
  wait_for(*two, first, "appeared");
  appearing.tell("a host that names a peer seen by it, and the peer by the host");
  const Process three = start_up(third, {"--peer", first.address(), "--peer", second.address()});
  wait_for(*three, first, "appeared");
  wait_for(*three, second, "appeared");
  const Stopwatch leaving;
  one->send(SIGINT);
  CHECK(one->finish().exit_code == 0);
  wait_for(*two, first, "left");
  leaving.tell("a peer that leaves missed");
}

TEST_CASE("several programs of one host find each other, also with the loopback alone") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(1);
  const NetworkHost& host = network.host(0);
  const auto meet = [&] {
    const Process one = host.run({"up", "--group", "home", "--name", "one"});
    const Process two = host.run({"up", "--group", "home", "--name", "two"});
    one->wait_for_stdout("two appeared");
    two->wait_for_stdout("one appeared");
  };
  meet();
  host.ip("link set eth0 down");
  host.ip("link set eth1 down");
  meet();
}

TEST_CASE("mistakes of discover and up are told, exit code 2") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"up"}, "--group is required"},
      {{"up", "--group", ""}, "--group ''"},
      {{"up", "--group", "a\nb"}, "--group 'a?b'"},
      {{"up", "--group", "a", "--name", std::string(65, 'x')}, "--name 'xxx"},
      {{"up", "--group", "a", "--port", "0"}, "--port 0"},
      {{"up", "--group", "a", "--port", "70000"}, "--port"},
      {{"discover", "--once", "--peer", "a b"}, "--peer a b: write HOST or HOST:PORT"},
      {{"discover", "--once", "--peer", "host:0"}, "--peer host:0"},
      {{"discover", "--once", "--wait", "-1"}, "--wait -1"},
      {{"discover", "--group", ""}, "--group ''"},
      {{"doctor", "--group", ""}, "--group ''"},
      {{"discover", "extra"}, "extra"},
  };
  for (const auto& [arguments, told] : mistakes) {
    const Outcome outcome = run_command(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(told));
  }
  CHECK_THAT(run_command({"doctor", "--help"}).out, Contains("nobody-in-group"));
  for (const char* name : {"up", "discover"}) CHECK_THAT(run_command({name, "--help"}).out, Contains("Example:\n  ringlet "));
}
