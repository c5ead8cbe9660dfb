#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/launch/command_process.hpp"
#include "tests/transport/raw_socket.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;

namespace {

/// A folder with a page of two files.
struct Page {
  TemporaryDirectory directory;
  Page() {
    std::ofstream(directory.path() + "/index.html") << std::string(1000, 'p');
    std::ofstream(directory.path() + "/core.wasm") << "wasm";
  }
};

std::vector<std::string> serve_arguments(const Page& page, std::vector<std::string> options, const std::vector<std::string>& program) {
  std::vector<std::string> arguments{"serve", "--host", "127.0.0.1", "--page", page.directory.path()};
  if (std::find(options.begin(), options.end(), "--port") == options.end()) arguments.insert(arguments.end(), {"--port", "0"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

struct Link {
  std::uint16_t port = 0;
  std::string token;
};

Link link_in(const std::string& text) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex(R"(http://127\.0\.0\.1:(\d+)/#token=(\S+))")));
  return {static_cast<std::uint16_t>(std::stoi(found[1])), found[2]};
}

/// Sends a request on a connection of its own, and returns the whole answer.
std::string ask(std::uint16_t port, const std::string& request) {
  const auto socket = RawSocket::connected_to(port);
  REQUIRE(::send(socket.descriptor(), request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::recv(socket.descriptor(), buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(count));
  return answer;
}

}  // namespace

TEST_CASE("serve tells mistakes with their value") {
  const Page page;
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--browsers", "0"}, "--browsers 0: the number of browsers must be from 1"},
      {{"--browsers", "-1"}, "--browsers -1: the number of browsers"},
      {{"--browsers", "5000"}, "--browsers 5000: the number of browsers"},
      {{"--ranks", "0"}, "-n 0: the number of ranks"},
      {{"--port", "70000"}, "--port 70000: a port is from 0 to 65535"},
      {{"--wait", "-1"}, "--wait -1: give seconds"},
      {{"--wait", "0"}, "--wait 0: give some time"},
      {{"--env", "RINGLET_GUESTS=1"}, "RINGLET_GUESTS=1"},
      {{"--elastic", "--no-elastic"}, "--no-elastic and --elastic: give one of them"},
      {{"--no-elastic", "--restarts", "2"}, "--restarts goes with --elastic"},
      {{"--elastic", "3:2"}, "--elastic 3:2: MIN is more than MAX"},
      {{"--elastic", "2:4", "-n", "5"}, "--elastic 2:4: the job would begin with 5 ranks"},
      {{"--env", "RINGLET_TOKEN=a-token-that-others-see"}, "--env RINGLET_TOKEN: other users see the command line"},
  };
  for (const auto& [options, told] : mistakes) {
    const Outcome outcome = run_command(serve_arguments(page, options, {"true"}));
    CAPTURE(options, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, StartsWith("ringlet serve: ") && Contains(told) && !Contains("a-token-that-others-see"));
  }
  CHECK_THAT(run_command({"serve", "true"}).err, Contains("no `--` found"));
  CHECK_THAT(run_command({"serve", "--help"}).out, Contains("Example:\n  ringlet serve "));
}

TEST_CASE("serve refuses a folder that cannot be served") {
  const auto err_of = [](const std::string& folder) {
    const Outcome outcome = run_command({"serve", "--port", "0", "--page", folder, "--", "true"});
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, StartsWith("ringlet serve: --page: "));
    return outcome.err;
  };
  CHECK_THAT(err_of("/no/such"), Contains("'/no/such' is no page: there is no index.html in it"));
  const Page page;
  const std::string large = page.directory.path() + "/weights.bin", unnamed = page.directory.path() + "/gr\xfcn.txt";
  std::ofstream(unnamed) << "latin";
  // APFS takes no such names.
  if (std::error_code error; std::filesystem::exists(unnamed, error)) {
    CHECK_THAT(err_of(page.directory.path()), Contains("/gr?n.txt': its name has to be UTF-8"));
    std::filesystem::remove(unnamed);
  }
  std::ofstream(large) << "weights";
  std::filesystem::resize_file(large, 257 << 20);
  CHECK_THAT(err_of(page.directory.path()), Contains("/weights.bin' makes it too much") && Contains("256 MiB"));
}

TEST_CASE("serve says what keeps it from starting") {
  const Page page;
  const auto err_of = [](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"serve", "--port", "0"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "true"});
    const Outcome outcome = run_command(arguments);
    CHECK(outcome.exit_code == 1);
    CHECK_THAT(outcome.err, StartsWith("ringlet serve: "));
    return outcome.err;
  };
  CHECK_THAT(err_of({"--page", page.directory.path(), "--host", "203.0.113.77"}),
             Contains("203.0.113.77") && Contains("not an address of this machine"));
  CHECK_THAT(err_of({"--page", page.directory.path(), "--host", "name"}), Contains("name") && Contains("no numeric address"));
  const std::string loop = page.directory.path() + "/loop";
  std::filesystem::create_symlink(loop, loop);
  CHECK_THAT(err_of({"--page", page.directory.path()}), Contains("--page: '" + loop + "' cannot be read: ") && !Contains("filesystem"));
  std::filesystem::remove(loop);
  const auto taken = RawSocket::listening(1);
  const Outcome outcome = run_command(serve_arguments(page, {"--port", std::to_string(taken.port())}, {"true"}));
  CHECK_THAT(outcome.err, Contains(std::to_string(taken.port())) && Contains("in use by another program"));
}

TEST_CASE("ranks that are served learn of the guests, the token and the page") {
  const Page page;
  const bool given = GENERATE(false, true), elastic = GENERATE(false, true);
  const std::string script =
      "echo $RINGLET_RANK of $RINGLET_WORLD_SIZE, $RINGLET_GUESTS guests, at $RINGLET_COORDINATOR on $RINGLET_LISTEN;"
      "echo token $RINGLET_TOKEN; echo page ${RINGLET_PAGE_FD:-none}; echo within $RINGLET_CONNECT_TIMEOUT_MS;"
      "echo socket ${RINGLET_PAGE_SOCKET_FD:-none} and elastic $RINGLET_ELASTIC";
  std::vector<std::pair<std::string, std::string>> environment{{"RINGLET_GUESTS", "9"}, {"RINGLET_PAGE_FD", "99"}};
  if (given) environment.emplace_back("RINGLET_TOKEN", "a token/of=mine, long enough");
  std::vector<std::string> options{"-n", "2", "-b", "3", "--wait", "1.5"};
  if (!elastic) options.emplace_back("--no-elastic");
  const Outcome outcome = run_command(serve_arguments(page, options, {"/bin/sh", "-c", script}), environment);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  const Link link = link_in(outcome.err);
  const std::string port = std::to_string(link.port);
  const auto lines = sorted_lines(outcome.out);
  REQUIRE(lines.size() == 10);
  CHECK_THAT(lines[0], Matches(R"(\[0\] 0 of 5, 3 guests, at 127\.0\.0\.1:\d+ on 127\.0\.0\.1)"));
  // The ranks of an elastic group meet elsewhere, and each of them can serve the page.
  CHECK((lines[0].find(":" + port + " on") == std::string::npos) == elastic);
  CHECK_THAT(lines[1], Matches(R"(\[0\] page \d+)"));
  CHECK_THAT(lines[2], Matches(elastic ? R"(\[0\] socket \d+ and elastic on)" : R"(\[0\] socket none and elastic off)"));
  CHECK(lines[4] == "[0] within 1500");
  CHECK_THAT(lines[6], Matches(elastic ? R"(\[1\] page \d+)" : R"(\[1\] page none)"));
  CHECK_THAT(lines[7], Matches(elastic ? R"(\[1\] socket \d+ and elastic on)" : R"(\[1\] socket none and elastic off)"));
  if (given) {
    CHECK(lines[3] == "[0] token jp7c-sc4j-9gx4-rz4d-9hhk-01gd-gs65");
    CHECK(link.token == "jp7c-sc4j-9gx4-rz4d-9hhk-01gd-gs65");
  } else {
    CHECK(link.token.size() >= 16);
    CHECK(lines[3] == "[0] token " + link.token);
    CHECK(lines[8] == "[1] token " + link.token);
  }
}

TEST_CASE("rank 0 serves the page while it waits, and all ends with a signal") {
  const Page page;
  CommandProcess process(serve_arguments(page, {"-n", "2", "-b", "2"}, {RINGLET_COMMAND, "bench", "--sizes", "4"}));
  process.wait_for_stderr("#token=");
  process.wait_for_stderr("\n");
  const Link link = link_in(process.err());
  const std::string last = "Host: 127.0.0.1:" + std::to_string(link.port) + "\r\nConnection: close\r\n\r\n";
  CHECK_THAT(ask(link.port, "GET / HTTP/1.1\r\n" + last),
             StartsWith("HTTP/1.1 200 OK\r\n") && EndsWith("\r\n\r\n" + std::string(1000, 'p')));
  CHECK_THAT(ask(link.port, "GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n" + last), Contains("\r\nContent-Encoding: gzip\r\n"));
  CHECK_THAT(ask(link.port, "GET /core.wasm HTTP/1.1\r\nAccept-Encoding: gzip\r\n" + last),
             Contains("\r\nContent-Type: application/wasm\r\n") && EndsWith("\r\n\r\nwasm"));
  CHECK_THAT(ask(link.port, "GET /etc/passwd HTTP/1.1\r\n" + last), StartsWith("HTTP/1.1 404 "));
  process.send(SIGTERM);
  const Outcome outcome = process.finish();
  CHECK(outcome.exit_code == 128 + SIGTERM);
}

TEST_CASE("serve says whose pages are refused, and what lets them join") {
  const Page page;
  for (const bool elastic : {true, false}) {
    std::vector<std::string> options{"--env", "RINGLET_ORIGINS=http://10.0.0.1:8080"};
    if (!elastic) options.emplace_back("--no-elastic");
    CommandProcess process(serve_arguments(page, options, {RINGLET_COMMAND, "bench", "--sizes", "4"}));
    process.wait_for_stderr("#token=");
    process.wait_for_stderr("\n");
    const Link link = link_in(process.err());
    const std::string request =
        "GET /ring HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nOrigin: http://10.0.0.1:5173\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nConnection: Upgrade\r\nHost: 127.0.0.1:" +
        std::to_string(link.port) + "\r\n\r\n";
    for (int times = 0; times < 2; ++times) CHECK_THAT(ask(link.port, request), StartsWith("HTTP/1.1 403 "));
    process.send(SIGTERM);
    const std::string told = process.finish().err;
    const std::string line =
        "ringlet: a page of http://10.0.0.1:5173 was refused; if it is yours, let it join: "
        "`ringlet serve --env RINGLET_ORIGINS=http://10.0.0.1:8080,http://10.0.0.1:5173`; where you start the ranks yourself, set "
        "that for all native ranks\n";
    CHECK_THAT(told, Contains(line));
    CHECK(told.find(line) == told.rfind(line));
  }
}

TEST_CASE("ranks give up when the browsers do not come in time") {
  const Page page;
  const Outcome outcome = run_command(serve_arguments(page, {"--wait", "0.2"}, {RINGLET_COMMAND, "bench", "--sizes", "4"}));
  CHECK(outcome.exit_code != 0);
  CHECK_THAT(outcome.err, Contains("only 0 of 1 guests have come in time"));
  const Outcome fixed = run_command(serve_arguments(page, {"--wait", "0.2", "--no-elastic"}, {RINGLET_COMMAND, "bench", "--sizes", "4"}));
  CHECK(fixed.exit_code != 0);
  CHECK_THAT(fixed.err, Contains("0 of 1 guests are here"));
}

TEST_CASE("a served program's end is serve's") {
  const Page page;
  CHECK(run_command(serve_arguments(page, {}, {"/bin/sh", "-c", "exit 7"})).exit_code == 7);
  CHECK(run_command(serve_arguments(page, {}, {"no-such-program"})).exit_code == 127);
  const Outcome outcome = run_command(serve_arguments(page, {"--qr", "--json"}, {"true"}));
  CHECK_THAT(outcome.err, Contains("\u2580") && Contains("\u2584"));
  CHECK_THAT(outcome.out, StartsWith("{") && Contains("\"exit_code\":0"));
}
