#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/process/pairing_machine.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// A TCP socket that waits at most 20 s for anything.
class Socket {
 public:
  explicit Socket(int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) : descriptor_(descriptor) {
    const timeval patience{20, 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) (void)::setsockopt(descriptor_, SOL_SOCKET, option, &patience, sizeof patience);
  }
  ~Socket() { ::close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Connects to an address such as "10.77.0.1:4000", and returns whether that worked.
  bool dial(const std::string& to) const {
    const sockaddr_in address = address_of(to.substr(0, to.find(':')), static_cast<std::uint16_t>(std::stoi(to.substr(to.find(':') + 1))));
    return ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  /// Starts to listen and returns its address.
  std::string listen() const {
    sockaddr_in address = address_of("127.0.0.1", 0);
    socklen_t length = sizeof address;
    REQUIRE(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(descriptor_, 4) == 0);
    REQUIRE(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  int accept() const { return ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC); }
  void say(const std::string& text) const { (void)::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL); }
  std::string hear() const {
    std::array<char, 4'096> text;
    const ssize_t count = ::recv(descriptor_, text.data(), text.size(), 0);
    return count > 0 ? std::string(text.data(), static_cast<std::size_t>(count)) : std::string();
  }
  /// Returns whether the other side ends the connection in time.
  bool ends() const {
    std::array<char, 4'096> text;
    ssize_t count;
    do count = ::recv(descriptor_, text.data(), text.size(), 0);
    while (count > 0);
    return count == 0 || errno == ECONNRESET;
  }

 private:
  static sockaddr_in address_of(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
  }
  const int descriptor_;
};

}  // namespace

TEST_CASE("bad connections by the hundred cost nobody the code") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(3);
  const Machine first(network.host(0)), second(network.host(2));
  REQUIRE(first.run({"token", "--save", "--group", "home"}).exit_code == 0);
  const Process host = first.show_code();
  const Json shown = wait_for_code(*host, 1);
  const std::string way = way_to(first, shown);
  const std::string greeting("RNGP\x02", 5), hello = greeting + std::string(
                                                                    "\x0d\0\x08\x01\x12\x04home\x1a\x03"
                                                                    "abc",
                                                                    15);
  const std::vector<std::string> words{"",
                                       "GET / HTTP/1.1\r\n\r\n",
                                       greeting + "\xff\xff",
                                       greeting + std::string("\0\0", 2),
                                       hello,
                                       hello + std::string("\x02\0\x08\x05", 4),
                                       std::string(100'000, 'x')};
  std::vector<std::unique_ptr<Socket>> held;
  int ended = 0;
  bool challenged = false;
  network.host(1).within([&] {
    {
      const Socket newcomer;
      newcomer.dial(way);
      newcomer.say(hello);
      challenged = newcomer.hear().rfind(greeting, 0) == 0;
    }
    for (std::size_t i = 0; i < 300; ++i) {
      auto stranger = std::make_unique<Socket>();
      if (!stranger->dial(way)) continue;
      stranger->say(words[i % words.size()]);
      ended += i % 70 == 1 && stranger->ends() ? 1 : 0;
      if (i % 10 == 0) held.push_back(std::move(stranger));
    }
  });
  CAPTURE(ended, challenged, host->out(), host->err());
  CHECK(challenged);
  CHECK(ended == 5);
  // Connections that stay open and silent do not keep out a machine that knows the code.
  const Outcome joined = second.join(shown["code"], {"--peer", way});
  CAPTURE(joined.err);
  CHECK(joined.exit_code == 0);
  CHECK(host->finish().exit_code == 0);
  CHECK_THAT(host->out(), !Contains("wrong_code"));
  CHECK(second.token() == first.token());
}

TEST_CASE("who guesses codes ends the pairing, and its owner is told why") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(2);
  const Machine first(network.host(0)), rogue(network.host(1));
  REQUIRE(first.run({"token", "--save", "--group", "home"}).exit_code == 0);
  const Process host = first.show_code();
  std::string last;
  for (int guess = 1; guess <= 3; ++guess) {
    const Json shown = wait_for_code(*host, guess);
    last = shown["code"].get<std::string>();
    const Outcome refused = rogue.join(wrong(last), {"--peer", way_to(first, shown)});
    CAPTURE(guess, refused.err);
    CHECK(refused.exit_code == 4);
    // The newcomer cannot know whether there will be another code.
    CHECK_THAT(refused.err, Contains("if it shows a new one, run this again"));
    host->wait_for_stdout("\"wrong_codes\":" + std::to_string(guess));
  }
  const Outcome over = host->finish();
  CHECK(over.exit_code == 4);
  CHECK_THAT(over.err, Contains("too many wrong codes; is someone guessing?"));
  // The last code is not accepted any more.
  CHECK(rogue.join(last, {"--wait", "1"}).exit_code == 3);
  CHECK(rogue.run({"token", "--show", "--group", "home"}).exit_code == 1);
}

TEST_CASE("a pairing that is cancelled or whose other side dies says so, and saves nothing") {
  if (!networks_are_here()) return;
  NetworkOfHosts network(1);
  const Machine machine(network.host(0));
  const auto join = [&](const std::string& way) {
    Process process = machine.start({"pair", "--join", "--peer", way});
    process->write_stdin("48217305\n");
    process->close_stdin();
    return process;
  };
  const auto expect = [&](const Outcome& outcome, const std::string& told, int exit_code = 1) {
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == exit_code);
    CHECK_THAT(outcome.err, Contains(told));
    CHECK_THAT(outcome.out + outcome.err, !Contains("48217305"));
    CHECK(machine.run({"token", "--show"}).exit_code == 1);
  };
  std::unique_ptr<Socket> listener;
  std::string way, nowhere;
  network.host(0).within([&] {
    listener = std::make_unique<Socket>();
    way = listener->listen();
    nowhere = Socket().listen();
  });
  {
    const Process newcomer = join(way);
    const Socket host(listener->accept());
    CHECK_THAT(host.hear(), Contains("RNGP"));
    newcomer->send(SIGINT);
    expect(newcomer->finish(), "stopped; nothing was saved", 128 + SIGINT);
  }
  {
    const Process newcomer = join(way);
    {
      const Socket host(listener->accept());
      CHECK_THAT(host.hear(), Contains("RNGP"));
      host.say("RNGP");
    }
    expect(newcomer->finish(), "ended the connection");
  }
  for (const std::string& nonsense : {std::string("HTTP/1.1 400 Bad Request\r\n"), std::string("RNGP\x03"),
                                      std::string("RNGP\x02\xff\xff", 7), std::string("RNGP\x02\x02\0\x08\x04", 9)}) {
    const Process newcomer = join(way);
    const Socket host(listener->accept());
    host.say(nonsense);
    expect(newcomer->finish(), "does not pair as this version does");
  }
  expect(join(nowhere)->finish(), nowhere);
}
