#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

constexpr int kRanks = 4;

/// Four ranks, of which one holds the others up, and the directory of their sockets.
class DelayedRanks {
 public:
  DelayedRanks(const std::string& what, int victim, std::vector<std::pair<std::string, std::string>> more = {}) {
    REQUIRE(::mkfifo(fifo().c_str(), 0600) == 0);
    environment_.insert(environment_.end(), more.begin(), more.end());
    launch_ = std::make_unique<CommandProcess>(std::vector<std::string>{"launch", "-n", std::to_string(kRanks), "--grace", "0.5", "--",
                                                                        RINGLET_DELAY_RANKS, what, std::to_string(victim), fifo()},
                                               environment_);
    launch_->wait_for_stdout("pid ", kRanks);
  }

  CommandProcess& launch() { return *launch_; }
  std::string fifo() const { return directory_.path() + "/go"; }
  std::string sockets() const { return directory_.path() + "/ringlet"; }
  pid_t pid_of(int rank) {
    const std::string mark = "[" + std::to_string(rank) + "] pid ";
    return static_cast<pid_t>(std::stol(launch_->out().substr(launch_->out().find(mark) + mark.size())));
  }
  void let_go_on() const {
    const int end = ::open(fifo().c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(end >= 0);
    CHECK(::write(end, "on\n", 3) == 3);
    ::close(end);
  }
  Outcome status(std::vector<std::string> options = {"--json"}) const {
    options.insert(options.begin(), "status");
    return run_command(options, environment_);
  }
  Json world() const {
    const Outcome outcome = status();
    CAPTURE(outcome.out, outcome.err);
    const Json all = Json::parse(outcome.out);
    REQUIRE(all["worlds"].size() == 1);
    CHECK(outcome.exit_code == (all["worlds"][0]["stalled"] ? 4 : 0));
    return all["worlds"][0];
  }
  int connect() const {
    for (const auto& entry : std::filesystem::directory_iterator(sockets())) {
      sockaddr_un to{};
      to.sun_family = AF_UNIX;
      std::strcpy(to.sun_path, entry.path().c_str());
      const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      REQUIRE(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
      return socket;
    }
    FAIL("nobody listens");
    return -1;
  }
  std::size_t count_sockets() const {
    const std::filesystem::directory_iterator all(sockets());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  TemporaryDirectory directory_;
  std::vector<std::pair<std::string, std::string>> environment_{
      {"XDG_RUNTIME_DIR", directory_.path()}, {"RINGLET_WARN_MS", "300"}, {"RINGLET_HEARTBEAT_TIMEOUT_MS", "60000"}};
  std::unique_ptr<CommandProcess> launch_;
};

}  // namespace

TEST_CASE("a rank that computes for long is named by the others and by status, until it goes on") {
  DelayedRanks ranks("computes", 2);
  CommandProcess& launch = ranks.launch();
  launch.wait_for_stderr("which computes since its all_reduce(sum, f32 x 1000, ");
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(), Contains("ringlet: rank 0: all_reduce(sum, f32 x 1000, ") && Contains(" number 1 has waited 0.") &&
                               Contains("for rank 2 (") && Contains(" number 0 ended "));
  const Json world = ranks.world();
  CAPTURE(world.dump(1));
  CHECK(world["format"] == 1);
  CHECK(world["size"] == kRanks);
  CHECK(world["stalled"] == true);
  REQUIRE(world["ranks"].size() == kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Json& one = world["ranks"][static_cast<std::size_t>(rank)];
    CHECK(one["rank"] == rank);
    CHECK(one["pid"] == ranks.pid_of(rank));
    CHECK(one["program"] == "ringlet_delay_ranks");
    CHECK(one["operations"] == 1);
    CHECK(one["last"]["number"] == 0);
    CHECK(one["bytes_sent"] > 0);
    CHECK(one["state"] == (rank == 2 ? "computing" : "in_operation"));
    CHECK(one["stalled"] == (rank != 2));
    if (rank == 2) continue;
    CHECK_THAT(one["running"][0]["call"].get<std::string>(), Contains("all_reduce(sum, f32 x 1000"));
    CHECK(one["running"][0]["number"] == 1);
  }
  const Outcome table = ranks.status({});
  CHECK(table.exit_code == 4);
  CHECK_THAT(table.out,
             Contains("RANK") && Contains("computing for ") && Contains("in all_reduce(") && Contains("waiting for") && !Contains("\x1b"));
  CHECK(ranks.status({"--pid", std::to_string(ranks.pid_of(3))}).exit_code == 4);
  CHECK(ranks.status({"--world", world["world"].get<std::string>()}).exit_code == 4);
  CHECK(ranks.status({"--world", "1"}).exit_code == 3);
  ranks.let_go_on();
  launch.wait_for_stderr("has gone on after ");
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(ranks.count_sockets() == 0);
  const Outcome nothing = ranks.status();
  CHECK(nothing.exit_code == 3);
  CHECK(Json::parse(nothing.out)["worlds"].empty());
}

TEST_CASE("a rank that stands still is named by the others and by status") {
  DelayedRanks ranks("computes", 1);
  CommandProcess& launch = ranks.launch();
  const pid_t stopped = ranks.pid_of(1);
  REQUIRE(::kill(stopped, SIGSTOP) == 0);
  launch.wait_for_stderr("which has not answered for ");
  CHECK_THAT(launch.err(), Contains("for rank 1, which"));
  const Json world = ranks.world();
  CAPTURE(world.dump(1));
  CHECK(world["ranks"][1]["state"] == "not_answering");
  CHECK(world["ranks"][0]["state"] == "in_operation");
  // The stopped rank cannot answer when it is asked itself.
  const Outcome outcome = ranks.status({"--json", "--pid", std::to_string(stopped)});
  CHECK(outcome.exit_code == 4);
  CHECK(Json::parse(outcome.out)["worlds"][0]["ranks"][0]["state"] == "not_answering");
  REQUIRE(::kill(stopped, SIGCONT) == 0);
  ranks.let_go_on();
  CHECK(launch.finish().exit_code == 0);
}

TEST_CASE("a rank in an operation of another stream is named with it") {
  DelayedRanks ranks("stream", 3);
  CommandProcess& launch = ranks.launch();
  launch.wait_for_stderr("), which is in all_reduce(sum, f32 x 1000, ");
  launch.wait_for_stderr("number 0 of stream 7 has waited ");
  const Json world = ranks.world();
  CHECK(world["ranks"][3]["running"][0]["stream"] == 7);
  CHECK(world["ranks"][0]["running"][0]["stream"] == 0);
  launch.send(SIGTERM);
  launch.finish();
}

TEST_CASE("without a delay there is nothing to say, and all is well") {
  DelayedRanks ranks("rest", 0, {{"RINGLET_WARN_MS", "60000"}});
  const Json world = ranks.world();
  CHECK(world["stalled"] == false);
  CHECK(world["failure"].is_null());
  for (const Json& rank : world["ranks"]) CHECK(rank["cipher"] == "none");
  ranks.launch().send(SIGTERM);
  CHECK_THAT(ranks.launch().finish().err, !Contains("has waited"));
}

TEST_CASE("status names the cipher of links, which do not move their bytes through memory") {
  const std::string cipher = GENERATE("aes256gcm", "chacha20");
  DelayedRanks ranks("rest", 0,
                     {{"RINGLET_WARN_MS", "60000"},
                      {"RINGLET_TOKEN", "a token for this test"},
                      {"RINGLET_CIPHER", cipher},
                      {"RINGLET_PEER_MEMORY", "off"}});
  for (const Json& rank : ranks.world()["ranks"]) {
    CHECK(rank["links"] == "tcp");
    CHECK(rank["cipher"] == cipher);
  }
  CHECK_THAT(ranks.status({}).out, Contains("tcp, " + cipher));
  ranks.launch().send(SIGTERM);
  ranks.launch().finish();
}

TEST_CASE("nobody who asks badly, or dies while asking, is noticed by the ranks") {
  DelayedRanks ranks("computes", 2);
  ranks.launch().wait_for_stderr("has waited ");
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1000, '\xff'), std::string(1000, '\n'), std::string("status")}) {
    const int socket = ranks.connect();
    (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(socket);
  }
  // More connections than are served at a time stay open and send nothing.
  std::vector<int> idle;
  for (int i = 0; i < 6; ++i) idle.push_back(ranks.connect());
  for (int i = 0; i < 10; ++i) {
    CommandProcess asking({"status", "--json", "--watch"}, {{"XDG_RUNTIME_DIR", std::filesystem::path(ranks.sockets()).parent_path()}});
    asking.wait_for_stdout("\"worlds\"");
    asking.send(SIGKILL);
    asking.finish();
  }
  CHECK(ranks.world()["ranks"].size() == kRanks);
  for (const int socket : idle) ::close(socket);
  ranks.let_go_on();
  CHECK(ranks.launch().finish().exit_code == 0);
}

TEST_CASE("sockets of killed ranks are removed by who sees them") {
  DelayedRanks ranks("computes", 2);
  // Stopped first, since a rank that notices a lost peer ends in order and removes its socket itself.
  for (const int signal : {SIGSTOP, SIGKILL})
    for (int rank = 0; rank < kRanks; ++rank) ::kill(ranks.pid_of(rank), signal);
  ranks.launch().finish();
  CHECK(ranks.count_sockets() == kRanks);
  CHECK(ranks.status().exit_code == 3);
  CHECK(ranks.count_sockets() == 0);
}

TEST_CASE("trouble with the directory is told once, and ends nothing") {
  const TemporaryDirectory directory;
  const std::string sockets = directory.path() + "/ringlet";
  const auto run = [&](const std::string& value) {
    const std::string fifo = directory.path() + "/go";
    ::mkfifo(fifo.c_str(), 0600);
    return run_command({"launch", "-n", "2", "--", RINGLET_DELAY_RANKS, "none", "0", fifo},
                       {{"XDG_RUNTIME_DIR", directory.path()}, {"RINGLET_STATUS", value}});
  };
  SECTION("others may enter it") {
    REQUIRE(::mkdir(sockets.c_str(), 0700) == 0);
    REQUIRE(::chmod(sockets.c_str(), 0755) == 0);
  }
  SECTION("it is a link") {
    REQUIRE(::mkdir((directory.path() + "/elsewhere").c_str(), 0700) == 0);
    REQUIRE(::symlink("elsewhere", sockets.c_str()) == 0);
  }
  const Outcome outcome = run("on");
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("`ringlet status` cannot ask this rank: "));
  const Outcome off = run("off");
  CHECK(off.exit_code == 0);
  CHECK_THAT(off.err, !Contains("ringlet status"));
  CHECK(run("maybe").exit_code != 0);
}

TEST_CASE("mistakes of status are told, exit code 2") {
  CHECK(run_command({"status", "--pid", "-3"}).exit_code == 2);
  const Outcome outcome = run_command({"status", "--world", "xyz"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, Contains("--world 'xyz': give up to 16 hexadecimal digits"));
  CHECK_THAT(run_command({"status", "--help"}).out, Contains("Example:") && Contains("4 something is stalled"));
}
