#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/process/ssh_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

using Process = std::unique_ptr<CommandProcess>;
using Words = SshHosts::Words;

/// Returns each rank's process id, from the lines "pid N" that the ranks print.
std::vector<pid_t> pids_in(const std::string& text) {
  std::vector<pid_t> pids;
  const std::regex line("pid ([0-9]+)");
  for (std::sregex_iterator match(text.begin(), text.end(), line), end; match != end; ++match) pids.push_back(std::stoi((*match)[1]));
  return pids;
}

/// A rank on the first host and one on the second, which run until they are ended.
struct TwoSleepers {
  explicit TwoSleepers(const SshHosts& hosts)
      : launcher(hosts.start({"--hosts", "10.77.0.1,10.77.0.2", "--linger", "0", "--grace", "0"},
                             script("echo pid $$; echo parent $PPID; exec sleep 1000"))) {
    launcher->wait_for_stdout("parent", 2);
    pids = pids_in(launcher->out());
    std::smatch parent;
    const std::regex line("\\[1 [^\\n]*parent ([0-9]+)");
    REQUIRE(std::regex_search(launcher->out(), parent, line));
    deputy = std::stoi(parent[1]);
  }

  Process launcher;
  std::vector<pid_t> pids;
  pid_t deputy = 0;  // of the second host
};

/// Reads the parent's process id from Linux's stat file: it comes after the number, the name in brackets and the state.
pid_t parent_of(pid_t process) {
  const std::string text = read_file("/proc/" + std::to_string(process) + "/stat");
  return std::stoi(text.substr(text.rfind(')') + 4));
}

}  // namespace

TEST_CASE("a rank that fails or is killed ends the others and is named with its host") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const Outcome failed =
      hosts.run(kAllHosts + Words{"--linger", "0", "--json"}, script("[ $RINGLET_RANK = 2 ] && exit 7; exec sleep 1000"));
  CAPTURE(failed.err);
  CHECK(failed.exit_code == 7);
  CHECK_THAT(failed.err, Contains("rank 2 on 10.77.0.2 (pid ") && Contains("exited with code 7; stopped ranks 0, 1, 3"));
  const Json report = Json::parse(failed.out);
  CHECK(report["first_failed"] == 2);
  CHECK(report["ranks"][3]["host"] == "10.77.0.3");

  const Process loop = hosts.start(kAllHosts, {RINGLET_COLLECTIVE_LOOP});
  loop->wait_for_stdout("met", 4);
  const std::vector<pid_t> pids = pids_in(loop->out().substr(loop->out().find("[3 ")));
  REQUIRE_FALSE(pids.empty());
  REQUIRE(::kill(pids.front(), SIGKILL) == 0);
  loop->close_stdin();
  const Outcome killed = loop->finish();
  CAPTURE(killed.out, killed.err);
  CHECK(killed.exit_code == 128 + SIGKILL);
  CHECK_THAT(killed.err, Contains("rank 3 on 10.77.0.3") && Contains("was killed by SIGKILL"));
  CHECK_THAT(killed.out, Contains("blames 3"));
}

TEST_CASE("signals reach all ranks, and Ctrl-C twice kills") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const Process polite = hosts.start(kAllHosts, script("trap 'echo bye; exit 0' TERM INT; echo here; while :; do sleep 0.05; done"));
  polite->wait_for_stdout("here", 4);
  polite->send(SIGTERM);
  const Outcome ended = polite->finish();
  CHECK_THAT(ended.out, Contains("[3 10.77.0.3] bye") && Contains("[1 10.77.0.2] bye"));
  CHECK(ended.exit_code == 0);

  const Process stubborn = hosts.start(kAllHosts, script("trap 'echo no' INT TERM; echo here; while :; do sleep 0.05; done"));
  stubborn->wait_for_stdout("here", 4);
  stubborn->send(SIGINT);
  stubborn->wait_for_stdout("no", 4);
  stubborn->send(SIGINT);
  CHECK(stubborn->finish().exit_code == 128 + SIGINT);
}

TEST_CASE("a launcher that is killed leaves no process behind") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const Words program{RINGLET_COLLECTIVE_LOOP};
  const Process loop = hosts.start(kAllHosts, program);
  loop->wait_for_stdout("met", 4);
  const std::vector<pid_t> pids = pids_in(loop->out());
  REQUIRE(pids.size() == 4);
  loop->send(SIGKILL);
  for (const pid_t pid : pids) wait_for_death(pid);
}

TEST_CASE("a host that is lost is told in ssh's own words, and no process stays behind") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  for (const bool deputy_dies : {true, false}) {
    const TwoSleepers ranks(*found);
    REQUIRE(::kill(deputy_dies ? ranks.deputy : parent_of(ranks.deputy), SIGKILL) == 0);
    const Outcome lost = ranks.launcher->finish();
    CAPTURE(deputy_dies, lost.err);
    CHECK(lost.exit_code == 1);
    CHECK_THAT(lost.err, Contains("lost 10.77.0.2 (10.77.0.2): ") && Contains("; to be ended where they run: rank 1"));
    // ssh's words depend on whether it was writing when the connection closed.
    if (deputy_dies)
      CHECK_THAT(lost.err, Contains("ended with code"));
    else
      CHECK_THAT(lost.err, Contains("Connection to 10.77.0.2 closed by remote host") || Contains("client_loop: send disconnect"));
    for (const pid_t pid : ranks.pids) wait_for_death(pid);
  }
}

TEST_CASE("a host that hangs does not hold the launcher, and ends its ranks when it wakes") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const TwoSleepers ranks(*found);
  REQUIRE(::kill(ranks.deputy, SIGSTOP) == 0);
  ranks.launcher->send(SIGINT);
  const Outcome ended = ranks.launcher->finish();
  REQUIRE(::kill(ranks.deputy, SIGCONT) == 0);
  CAPTURE(ended.err);
  CHECK(ended.exit_code == 128 + SIGINT);
  CHECK_THAT(ended.err, Contains("stopped rank 0") && Contains("rank 1 on 10.77.0.2 was lost with its machine"));
  for (const pid_t pid : ranks.pids) wait_for_death(pid);
}

#ifdef RINGLET_ELASTIC_EXAMPLE
TEST_CASE("a rank of an elastic job that is killed on a host comes back there") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const Process launcher =
      found->start({"--hosts", "10.77.0.1,10.77.0.2,10.77.0.3", "--elastic", "2:3", "--no-prefix"}, {RINGLET_ELASTIC_EXAMPLE, "1500", "2"});
  launcher->wait_for_stdout("of 3 begins, process ", 3);
  launcher->wait_for_stdout("\n", 3);
  const std::string mark = "rank 1 of 3 begins, process ";
  const std::string& out = launcher->out();
  REQUIRE(::kill(static_cast<pid_t>(std::stol(out.substr(out.find(mark) + mark.size()))), SIGKILL) == 0);
  launcher->wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  const Outcome outcome = launcher->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err,
             Contains("rank 1 on 10.77.0.2 (pid ") && Contains("was killed by SIGKILL, and is started again (failure 1 of 3)"));
  CHECK_THAT(outcome.err, Contains("all ranks went on to the end; started again: rank 1 (once)"));
}

TEST_CASE("a rank that comes back knocks where the others reach the host, which need not be at its first interface") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const std::string program = "[ $RINGLET_RESTARTS = 0 ] || echo knocks at $RINGLET_JOIN; exec " RINGLET_ELASTIC_EXAMPLE " 1500 2";
  const Process launcher = found->start({"--hosts", "10.78.0.2,10.78.0.3", "--elastic", "2:2", "--no-prefix"}, {"/bin/sh", "-c", program});
  launcher->wait_for_stdout("of 2 begins, process ", 2);
  launcher->wait_for_stdout("\n", 2);
  const std::string mark = "rank 1 of 2 begins, process ";
  const std::string& out = launcher->out();
  REQUIRE(::kill(static_cast<pid_t>(std::stol(out.substr(out.find(mark) + mark.size()))), SIGKILL) == 0);
  const Outcome outcome = launcher->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("knocks at 10.78.0.2:"));
}
#endif
