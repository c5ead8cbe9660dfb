#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// A UDP port of all addresses that nobody else can hear at.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    // An IPv6 socket takes IPv4's port, too.
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    socklen_t length = sizeof address;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    number_ = ntohs(address.sin6_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::string number() const { return std::to_string(number_); }

 private:
  int socket_;
  int number_ = 0;
};

}  // namespace

TEST_CASE("a UDP port that another program holds is told as such, and not taken for a firewall") {
  const TakenPort port;
  const std::vector<std::string> arguments =
      GENERATE(std::vector<std::string>{"doctor", "--wait", "0.1"}, std::vector<std::string>{"discover", "--once", "--wait", "0.1"});
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--interface", "lo", "--port", port.number()});
  const Outcome outcome = run_command(all);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("port " + port.number() + ": address already in use; choose another port with --port"));
}

TEST_CASE("pairing at another port says so in the line to type, and Ctrl-C ends it with 130") {
  const std::string port = TakenPort().number();
  CommandProcess process({"pair", "--interface", "lo", "--port", port}, {{"RINGLET_TOKEN", "token-of-this-test-alone"}});
  process.wait_for_stdout("ringlet pair --group 'home' --join --port " + port + "\n");
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 128 + SIGINT);
  CHECK_THAT(outcome.err, Contains("stopped; the code is void"));
}

TEST_CASE("a peer's name that means no host is told") {
  const std::vector<std::string> arguments =
      GENERATE(std::vector<std::string>{"discover", "--once"}, std::vector<std::string>{"run", "--group", "home"});
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--wait", "0.5", "--interface", "lo", "--port", TakenPort().number(), "--peer", "nohost.invalid"});
  if (arguments.front() == "run") all.insert(all.end(), {"--", "/bin/true"});
  const Outcome outcome = run_command(all, {{"RINGLET_TOKEN", "token-of-this-test-alone"}});
  CHECK(outcome.exit_code == 3);
  CHECK_THAT(outcome.err, Contains("there is no host nohost.invalid"));
}

TEST_CASE("doctor on the loopback: its interface, twins, and a port at which nothing answers though the machine was heard") {
  const std::string port = TakenPort().number();
  const std::vector<std::string> up{"up",     "--group", "home",   "--name",      "twin",         "--interface", "lo",
                                    "--port", port,      "--json", "--no-dns-sd", "--allow-file", "/no/such"};
  CommandProcess one(up), other(up);
  one.wait_for_stderr("--allow-file /no/such cannot be read as yet (No such file or directory)");
  one.wait_for_stdout("appeared");
  const Outcome outcome = run_command({"doctor", "--interface", "lo", "--port", port, "--wait", "0.5", "--peer", "127.0.0.1:9"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.out, Contains("\n  lo  ") && Contains("\n  twin (") && Contains("nothing answers at its UDP port 9"));
  CHECK_THAT(outcome.out, Contains("This machine has no token") && Contains("twin is up without a token"));
}
