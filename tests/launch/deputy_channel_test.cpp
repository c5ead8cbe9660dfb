#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/temporary_directory.hpp"
#include "tools/job/message_link.hpp"
#include "tools/launch/deputy.hpp"
#include "tools/launch/hosts/ssh_connection.hpp"
#include "tools/launch/pipe.hpp"
#include "tools/launch/pipe_link.hpp"

using namespace ringlet;
using namespace ringlet::launch;
using Catch::Matchers::Contains;
using ringlet::test::TemporaryDirectory;

namespace {

std::string framed(const std::string& bytes) {
  std::string message;
  for (std::size_t i = 0; i < 4; ++i) message += static_cast<char>(bytes.size() >> (8 * i) & 0xff);
  return message + bytes;
}

ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

job::StartRanks make_start() {
  job::StartRanks start;
  start.world_size = 7;
  start.first_rank = 2;
  start.ranks = 3;
  start.program = "./train";
  start.arguments = {"\xff\xfe", ""};
  start.environment = {{"RINGLET_TOKEN", "secret"}, {"K", "a\nb"}};
  start.has_input = true;
  start.input_rank = 2;
  return start;
}

/// Collects the messages of a channel.
struct Listener {
  void listen(std::unique_ptr<job::MessageChannel> to) {
    channel = std::move(to);
    channel->start([this](const job::Message& message) { messages.push_back(message); },
                   [this](const Status& status) { losses.push_back(status); });
  }

  std::unique_ptr<job::MessageChannel> channel;
  std::vector<job::Message> messages;
  std::vector<Status> losses;
};

/// "ssh", which is a shell that runs `script` whatever it is told, and the result of the connection by it.
struct Connected {
  explicit Connected(const std::string& script) {
    host.ssh = "beta.invalid";
    options.ssh = {"/bin/sh", "-c", script};
    connection = std::make_unique<SshConnection>(loop, host, options, helper_path, [this](Result<std::unique_ptr<Link>> result) {
      done = true;
      failure = result.status().text();
      if (result.ok()) listener.listen(std::make_unique<job::MessageLink>(loop, std::move(result).value(), job::kPipeLimits));
    });
    while (!done || (failure.empty() && listener.losses.empty())) loop.wait();
  }

  UvLoop loop;
  Host host;
  SshOptions options;
  std::string helper_path = "/no/such/ringlet", failure;
  bool done = false;
  Listener listener;
  std::unique_ptr<SshConnection> connection;
};

}  // namespace

TEST_CASE("messages pass in any pieces, behind whatever a login prints, with words of any bytes") {
  job::Offer offer;
  offer.protocol = job::kProtocol;
  const std::vector<job::Message> sent{offer, make_start(), job::Exit{4, 0, 9, false, 0}, job::Output{6, true, std::string("x\0y", 3)},
                                       job::Order{15, true, 3000}};
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/bytes";
  std::ofstream file(path, std::ios::binary);
  file << "welcome!\n" << kGreeting;
  for (const job::Message& message : sent) file << framed(encode(message));
  file.close();
  for (const char* piece : {"1", "7", "100000"}) {
    const Connected ssh("dd status=none bs=" + std::string(piece) + " if=" + path);
    CAPTURE(piece, ssh.failure);
    REQUIRE(ssh.listener.losses.size() == 1);
    CHECK(ssh.listener.losses.front().text() == "ssh ended with code 0");
    CHECK((ssh.listener.messages == sent));
  }
}

TEST_CASE("a deputy that does not greet is told with what its login says") {
  CHECK_THAT(Connected("echo 'Permission denied' >&2; exit 255").failure, Contains("beta.invalid: ssh would ask for a password"));
  CHECK_THAT(Connected("echo welcome; exit 127").failure, Contains("there is no `ringlet` there"));
  CHECK_THAT(Connected("exec cat /dev/zero").failure, Contains("prints without end"));
}

TEST_CASE("what comes behind a broken message is passed over") {
  const std::string good = framed(encode(job::Notice{"here"}));
  for (const std::string& broken : {std::string("\0\0\0\0x", 5), std::string("\xff\xff\xff\xff\1", 5), framed(std::string(8, '\xff'))}) {
    UvLoop loop;
    PipeEnds in = open_pipe(UV_NONBLOCK_PIPE, 0), out = open_pipe(0, UV_NONBLOCK_PIPE);
    Listener listener;
    listener.listen(std::make_unique<job::MessageLink>(
        loop, std::make_unique<PipeLink>(loop, std::move(in.read_end), std::move(out.write_end), "test"), job::kPipeLimits));
    const std::string bytes = good + broken + good;
    REQUIRE(::write(in.write_end.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    while (listener.losses.empty()) loop.wait();
    in.write_end.reset();
    loop.flush();
    CHECK(listener.messages.size() == 1);
    REQUIRE(listener.losses.size() == 1);
    CHECK(listener.losses.front().code() == Errc::protocol_error);
  }
}

TEST_CASE("what is no message is refused") {
  const auto accepted = [](const job::Message& message) { return job::decode(bytes_of(encode(message))).has_value(); };
  for (const char opening : {'\x0a', '\x2a', '\x91'}) CHECK_FALSE(job::decode(bytes_of(std::string(1 << 20, opening))));
  job::StartRanks start = make_start();
  CHECK(accepted(start));
  start.first_rank = 5;
  CHECK_FALSE(accepted(start));
  start = make_start();
  start.input_rank = 7;
  CHECK_FALSE(accepted(start));
  start = make_start();
  start.world_size = job::kMaxWorldSize + 1;
  CHECK_FALSE(accepted(start));
  CHECK_FALSE(accepted(job::StartRanks{}));
  CHECK(accepted(job::Exit{0, 255, 0, false, 0}));
  // Such a code would look like success when the launcher exits with it.
  CHECK_FALSE(accepted(job::Exit{0, 256, 0, false, 0}));
  CHECK_FALSE(accepted(job::Exit{0, 0, 65, false, 0}));
  CHECK_FALSE(accepted(job::Exit{0, 1, 0, false, 0, job::kMaxWorldSize + 1}));
  CHECK_FALSE(accepted(job::Failed{0, "x"}));
  CHECK_FALSE(accepted(job::Failed{256, "x"}));
  CHECK_FALSE(accepted(job::Order{0, false, 0}));
  CHECK_FALSE(accepted(job::Order{65, true, 0}));
  CHECK_FALSE(accepted(job::PortBound{65536}));
  CHECK_FALSE(accepted(job::PortBound{0}));
  CHECK_FALSE(accepted(job::Input{std::string(job::kMaxInputBytes + 1, 'x')}));
  const std::string whole = encode(make_start());
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
    CHECK_FALSE(job::decode(bytes_of(whole.substr(0, bytes))) == job::Message(make_start()));
}
