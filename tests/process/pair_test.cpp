#include <linux/if_ether.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/process/pairing_machine.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// Records everything that the bridges pass from now on.
class Wiretap {
 public:
  Wiretap() : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    const int bytes = 8 << 20;
    (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  }
  ~Wiretap() { ::close(socket_); }
  std::string heard() const {
    std::string all;
    std::array<char, 65'536> packet;
    for (ssize_t count; (count = ::recv(socket_, packet.data(), packet.size(), 0)) > 0;)
      all.append(packet.data(), static_cast<std::size_t>(count));
    return all;
  }

 private:
  const int socket_;
};

}  // namespace

TEST_CASE("a machine gets the token of a group by the code, which nobody hears") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Machine first(network.host(0)), second(network.host(1));
  REQUIRE(first.run({"token", "--save", "--group", "home"}).exit_code == 0);
  const Wiretap tap;
  // A machine that is up in the group must not take one that is pairing for a member.
  const Process up = first.start({"up", "--group", "home", "--name", "watcher"});
  up->wait_for_stderr("is up");
  const Process host = first.show_code();
  const Json shown = wait_for_code(*host, 1);
  const auto code = shown["code"].get<std::string>();
  CHECK(code.size() == 8);
  CHECK(shown["name"] == "host1");
  const Outcome joined = second.join(code.substr(0, 4) + " " + code.substr(4));
  CAPTURE(joined.err, host->err());
  CHECK(joined.exit_code == 0);
  CHECK_THAT(joined.out, Contains("paired with host1"));
  CHECK(host->finish().exit_code == 0);
  CHECK_THAT(host->out(), Contains("\"event\":\"paired\",\"name\":\"host2\""));
  const std::string token = first.token();
  CHECK(token.size() == 35);
  CHECK(second.token() == token);
  CHECK_THAT(up->out(), !Contains("host1"));

  const std::string heard = tap.heard();
  CHECK_THAT(heard, Contains("RNGP") && Contains("host2"));
  CHECK_THAT(heard, !Contains(code) && !Contains(token.substr(0, 34)) && !Contains(token.substr(0, 9)));
  CHECK_THAT(joined.out + joined.err + host->err(), !Contains(token.substr(0, 9)) && !Contains(code));

  const Outcome again = second.join(code);
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.err, Contains("--replace"));
}

TEST_CASE("a wrong code is refused and makes the code void") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Machine first(network.host(0)), second(network.host(1));
  REQUIRE(first.run({"token", "--save", "--group", "home"}).exit_code == 0);
  const Process host = first.show_code({"--digits", "6"});
  const auto code = wait_for_code(*host, 1)["code"].get<std::string>();
  CHECK(code.size() == 6);
  const Outcome refused = second.join(wrong(code));
  CHECK(refused.exit_code == 4);
  CHECK_THAT(refused.err, Contains("host1 does not take this code"));
  CHECK(second.run({"token", "--show", "--group", "home"}).exit_code == 1);
  host->wait_for_stdout("\"wrong_code\"");
  const auto fresh = wait_for_code(*host, 2)["code"].get<std::string>();
  const Outcome stale = second.join(code, {"--peer", way_to(first, wait_for_code(*host, 1))});
  if (code != fresh) {
    CHECK(stale.exit_code == 4);
    const auto third = wait_for_code(*host, 3)["code"].get<std::string>();
    const Outcome joined = second.join(third, {"--peer", way_to(first, wait_for_code(*host, 3))});
    CAPTURE(joined.err);
    CHECK(joined.exit_code == 0);
  }
  CHECK(host->finish().exit_code == 0);
  CHECK(second.token() == first.token());
}

TEST_CASE("where multicast is blocked, a named machine pairs, by its port or without") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  network.block_multicast();
  const Machine first(network.host(0)), second(network.host(1)), third(network.host(2));
  REQUIRE(first.run({"token", "--save", "--group", "home"}).exit_code == 0);
  {
    const Process host = first.show_code();
    const Json shown = wait_for_code(*host, 1);
    const auto code = shown["code"].get<std::string>();
    const Outcome nobody = second.join(code, {"--wait", "1"});
    CHECK(nobody.exit_code == 3);
    CHECK_THAT(nobody.err, Contains("no machine shows a code for group home") && Contains("--peer HOST:PORT"));
    const Outcome joined = second.join(code, {"--peer", network.host(0).address()});
    CAPTURE(joined.err);
    CHECK(joined.exit_code == 0);
    CHECK(host->finish().exit_code == 0);
  }
  const Process host = first.show_code();
  const Json shown = wait_for_code(*host, 1);
  const Outcome joined = third.join(shown["code"], {"--peer", way_to(first, shown), "--json"});
  CAPTURE(joined.err);
  CHECK(joined.exit_code == 0);
  CHECK(Json::parse(joined.out)["name"] == "host1");
  CHECK(host->finish().exit_code == 0);
  CHECK(third.token() == second.token());
}

TEST_CASE("two machines that pair for the same group have to be told apart, and one that waits in vain ends") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  const Machine first(network.host(0)), second(network.host(1)), third(network.host(2));
  for (const Machine* one : {&first, &second}) REQUIRE(one->run({"token", "--save", "--group", "home"}).exit_code == 0);
  const Process one = first.show_code(), two = second.show_code();
  const auto code = wait_for_code(*one, 1)["code"].get<std::string>();
  wait_for_code(*two, 1);
  const Outcome both = third.join(code);
  CHECK(both.exit_code == 1);
  CHECK_THAT(both.err, Contains("2 machines") && Contains("host1 (--peer ") && Contains("host2 (--peer "));
  two->send(SIGTERM);
  CHECK(two->finish().exit_code == 128 + SIGTERM);
  const Process waits = second.show_code({"--valid", "1"});
  CHECK(waits->finish().exit_code == 3);
  const Outcome joined = third.join(code);
  CAPTURE(joined.err);
  CHECK(joined.exit_code == 0);
}

TEST_CASE("mistakes of pair are told, exit code 2, and no token is exit code 1") {
  TemporaryDirectory home;
  const auto run = [&](std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), "pair");
    CommandProcess process(std::move(arguments), {{"XDG_CONFIG_HOME", home.path()}});
    process.write_stdin(input);
    process.close_stdin();
    return process.finish();
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--group", "../x"}, "--group '../x'"},     {{"--digits", "5"}, "--digits 5"},
      {{"--digits", "9"}, "--digits 9"},           {{"--valid", "0"}, "--valid 0"},
      {{"--join", "--digits", "6"}, "--join"},     {{"--replace"}, "--join"},
      {{"--join", "--peer", "a b"}, "--peer a b"}, {{"--name", "a\nb"}, "--name 'a?b'"},
      {{"--qr", "--json"}, "--qr with --json"},    {{"48217305"}, "48217305"},
  };
  for (const auto& [arguments, told] : mistakes) {
    const Outcome outcome = run(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(told));
  }
  const Outcome no_code = run({"--join"}, "4821a305\n");
  CHECK(no_code.exit_code == 2);
  CHECK_THAT(no_code.err, Contains("6 to 8 digits") && !Contains("4821"));
  const Outcome no_token = run({});
  CHECK(no_token.exit_code == 1);
  CHECK_THAT(no_token.err, Contains("ringlet token --save --group home"));
  CHECK(run({"--qr"}).exit_code == 1);
  CHECK_THAT(run({"--help"}).out, Contains("Example:\n  ringlet pair"));
}
