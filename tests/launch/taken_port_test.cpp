#include <netinet/in.h>
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
