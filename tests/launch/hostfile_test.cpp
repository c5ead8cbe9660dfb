#include <catch2/catch.hpp>

#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/hosts/meeting_place.hpp"
#include "tools/launch/hosts/messages.hpp"
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
  CHECK_THAT(refusal("a,,b"), Contains("no name"));
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
  CHECK(own[0].environment == std::vector<std::pair<std::string, std::string>>{{"K", "V"}});
  CHECK(own[0].working_directory == "/srv");
  CHECK(own[1].ssh == "u@b");

  const auto list =
      parse_hostfile("f", R"([{"ssh": "a", "ips": ["10.0.0.1"], "rdma": [null, "rdma_en5"]}, {"ssh": "b", "ips": [], "rdma": []}])");
  REQUIRE(list.size() == 2);
  CHECK(list[0].ips.front() == "10.0.0.1");

  const auto object = parse_hostfile("f", R"({"backend": "ring", "envs": ["A=1", "B=x=y"], "hosts": [{"ssh": "a", "ips": ["10.0.0.1"]}]})");
  REQUIRE(object.size() == 1);
  CHECK(object[0].environment == std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "x=y"}});

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
  CHECK_THAT(refusal(R"([{"ssh": "a", "slots": 99999999999999999}])"), Contains("from 1 to"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "slots": "2"}])"), Contains("a whole number is expected"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "env": ["K"]}])"), Contains("write it as NAME=VALUE"));
  CHECK_THAT(refusal(R"([{"ssh": "a", "colour": "red"}])"), Contains("\"colour\" is not known") && Contains("slots"));
  CHECK_THAT(refusal(R"([["10.0.0.1:5000"]])"), Contains("RINGLET_HOSTFILE"));
  CHECK_THAT(refusal(R"({"backend": "ring"})"), Contains("\"hosts\" is missing"));
  CHECK_THAT(refusal("alpha\nbeta slots=two\n"), Contains("hosts.json line 2: 'slots=two' is not understood"));
  CHECK_THAT(refusal("alpha slots=99999\n"), Contains("line 1"));
  CHECK_THAT(refusal_of([] { read_hostfile("no/such/file"); }), Contains("--hostfile no/such/file") && Contains("check the path"));
}

TEST_CASE("messages pass in any pieces, behind whatever a login prints, with words of any bytes") {
  Job job;
  job.options.world_size = 7;
  job.options.first_rank = 2;
  job.options.ranks_here = 3;
  job.options.command = {"./train", "\xff\xfe", ""};
  job.options.environment = {{"RINGLET_TOKEN", "secret"}, {"K", "a\nb"}};
  job.options.stdin_rank = 2;
  job.listen_at = ListenAt{"::", 0};
  RankExit exit;
  exit.rank = 4;
  exit.pid = 7;
  exit.signal = 9;
  const std::string bytes = "welcome!\n" + encode(Hello{}) + encode(job) + encode(ExitNote{exit, std::nullopt}) +
                            encode(OutputPart{6, true, std::string_view("x\0y", 3)}) + encode(StopOrder{15, std::chrono::seconds(3)});
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    MessageReader reader(true);
    std::vector<std::pair<MessageKind, std::string>> messages;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      reader.feed(std::string_view(bytes).substr(at, piece),
                  [&](MessageKind kind, std::string_view body) { messages.emplace_back(kind, body); });
    REQUIRE(messages.size() == 5);
    CHECK(parse_hello(messages[0].second).protocol == kDeputyProtocol);
    const Job read = parse_job(messages[1].second);
    CHECK(read.options.command == job.options.command);
    CHECK(read.options.environment == job.options.environment);
    CHECK(read.options.first_rank == 2);
    CHECK(read.options.ranks_here == 3);
    CHECK(read.listen_at->host == "::");
    CHECK(parse_exit(messages[2].second).exit.signal == 9);
    const OutputPart part = parse_output(messages[3].second);
    CHECK(part.rank == 6);
    CHECK(part.error);
    CHECK(part.bytes == std::string_view("x\0y", 3));
    CHECK(parse_stop(messages[4].second).grace == std::chrono::seconds(3));
  }
}

TEST_CASE("what comes behind a broken message is passed over") {
  MessageReader reader(false);
  int messages = 0;
  const auto count = [&](MessageKind, std::string_view) { ++messages; };
  CHECK_THROWS_AS(reader.feed(encode(MessageKind::alive) + std::string("\0\0\0\0x", 5), count), LaunchError);
  reader.feed(encode(MessageKind::alive), count);
  CHECK(messages == 1);
}

TEST_CASE("the ranks meet where the others can reach the first host") {
  const auto host = [](const char* ssh, Hello hello = {}) {
    Host made;
    made.ssh = ssh;
    return ReachedHost{made, std::move(hello)};
  };
  const auto seen = [](const char* launcher, const char* own) { return Hello{kDeputyProtocol, launcher, own}; };
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
  ReachedHost told = beta;
  told.host.ips = {"10.9.0.2", "10.0.0.2"};
  CHECK(choose({told, here}) == "10.9.0.2");

  CHECK(listen_for("10.0.0.1", 5000).host == "0.0.0.0");
  CHECK(listen_for("alpha", 5000).port == 5000);
  CHECK(listen_for("fd00::1", 0).host == "::");
  CHECK(listen_for("::1", 0).host == "::1");
  CHECK(listen_for("127.0.0.1", 0).host == "127.0.0.1");
}

TEST_CASE("what is no message is refused") {
  const auto feed = [](const std::string& bytes, bool greeted) {
    MessageReader reader(greeted);
    reader.feed(bytes, [](MessageKind, std::string_view body) { parse_job(body); });
  };
  CHECK_THROWS_AS(feed(std::string("\0\0\0\0x", 5), false), LaunchError);
  CHECK_THROWS_AS(feed(std::string("\xff\xff\xff\xff\1", 5), false), LaunchError);
  CHECK_THROWS_AS(feed(std::string(1 << 20, 'n'), true), LaunchError);
  CHECK_THROWS_AS(feed(encode(MessageKind::job, "not CBOR"), false), LaunchError);
  Job job;
  job.options.command = {"x"};
  job.options.first_rank = 5;
  CHECK_THROWS_AS(feed(encode(job), false), LaunchError);
  for (const char opening : {'\x91', '\x81', '\xdd'})
    CHECK_THROWS_AS(feed(encode(MessageKind::job, std::string(1 << 20, opening)), false), LaunchError);
  const auto exit_with = [](int rank, int pid, std::optional<int> code, std::optional<int> signal) {
    ExitNote note;
    note.exit.rank = rank;
    note.exit.pid = pid;
    note.exit.code = code;
    note.exit.signal = signal;
    return encode(note).substr(kMessageHead);
  };
  CHECK(parse_exit(exit_with(0, 7, 255, std::nullopt)).exit.code == 255);
  // Such a code would look like success when the launcher exits with it.
  CHECK_THROWS_AS(parse_exit(exit_with(0, 7, 256, std::nullopt)), LaunchError);
  CHECK_THROWS_AS(parse_exit(exit_with(0, 7, std::nullopt, 0)), LaunchError);
  CHECK_THROWS_AS(parse_exit(exit_with(-1, 7, 0, std::nullopt)), LaunchError);
  CHECK_THROWS_AS(parse_exit(exit_with(0, 0, 0, std::nullopt)), LaunchError);
  CHECK_THROWS_AS(parse_exit(exit_with(0, 7, std::nullopt, std::nullopt)), LaunchError);
  CHECK_THROWS_AS(parse_refusal(encode(Refusal{0, "x"}).substr(kMessageHead)), LaunchError);
  CHECK_THROWS_AS(parse_number(encode_number(MessageKind::ready, 65536).substr(kMessageHead), kMaxPort), LaunchError);
  const std::string whole = encode(Job{}).substr(5);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) CHECK_THROWS_AS(parse_job(whole.substr(0, bytes)), LaunchError);
}
