#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/process/home_of_machines.hpp"
#include "tests/transport/flood.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

/// Makes a firewall on the host that lets in answers and what the rules name, with semicolons between.
void deny_inbound(const NetworkHost& host, const std::string& rules) {
  host.command("nft add table inet wall");
  host.command("nft 'add chain inet wall in { type filter hook input priority 0; policy drop; }'");
  host.command("nft add rule inet wall in iifname lo accept");
  host.command("nft add rule inet wall in ct state established,related accept");
  std::istringstream list(rules);
  for (std::string rule; std::getline(list, rule, ';');) host.command("nft add rule inet wall in " + rule + " accept");
}

/// Returns the process id that rank `rank` has printed.
pid_t pid_of(const std::string& output, int rank) {
  const std::string mark = "[" + std::to_string(rank) + " host" + std::to_string(rank + 1) + "] pid ";
  const std::size_t at = output.find(mark);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(output.substr(at + mark.size())));
}

}  // namespace

TEST_CASE("a program runs on all hosts, and sums") {
  if (!networks_are_here()) return;
  Home home;
  const Outcome outcome = home.run({}, {RINGLET_COLLECTIVE_LOOP, "--twice"})->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err == "ringlet run: 3 ranks: 1 on host1, 1 on host2, 1 on host3\n");
  CHECK(sorted_lines(outcome.out) == std::vector<std::string>{"[0 host1] sum 81", "[1 host2] sum 81", "[2 host3] sum 81"});
  home.agents[1]->wait_for_stdout("started: " RINGLET_COLLECTIVE_LOOP ", rank 1 of 3");
  home.agents[1]->wait_for_stdout("ended\n");

  const Outcome two = home.run({"--machines", "host3,host2", "-n", "3", "--json"}, {RINGLET_COLLECTIVE_LOOP, "--twice"})->finish();
  CAPTURE(two.out, two.err);
  CHECK(two.exit_code == 0);
  const Json end = Json::parse(two.out);
  CHECK(end["exit_code"] == 0);
  REQUIRE(end["ranks"].size() == 3);
  CHECK(end["ranks"][0]["machine"] == "host2");
  CHECK(end["ranks"][1]["machine"] == "host2");
  CHECK(end["ranks"][2]["machine"] == "host3");
  CHECK_THAT(two.err, Contains("[2 host3] sum 81"));
  home.end();
}

TEST_CASE("the traces of all machines become one file, without leave of their owners") {
  if (!networks_are_here()) return;
  Home home;
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome outcome = home.run({"--trace", file}, {RINGLET_COLLECTIVE_LOOP, "--rounds", "12"})->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("ringlet run: the trace is in '" + file + "': ") && Contains(" of 3 processes"));
  std::set<int> ranks;
  const Json json = Json::parse(read_file(file));
  for (const Json& event : json["traceEvents"])
    if (event["name"] == "broadcast") ranks.insert(event["pid"].get<int>());
  CHECK(ranks == std::set<int>{0, 1, 2});
  home.end();
}

TEST_CASE("a signal ends the transfer of a trace from a machine whose agent stands still") {
  if (!networks_are_here()) return;
  Home home({RINGLET_COMMAND});
  // Slow enough that the agent can be stopped in the midst of it.
  for (const char* interface : {"eth0", "eth1"})
    home.network.host(1).command(std::string("tc qdisc add dev ") + interface + " root tbf rate 20mbit burst 64kb latency 500ms");
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Process run = home.run({"--trace", file}, {RINGLET_COMMAND, "bench", "--sizes", "4", "--seconds", "2"});
  wait_for_condition([&] { return std::filesystem::exists(directory.path() + "/trace.1.json"); });
  home.agents[1]->send(SIGSTOP);
  run->wait_for_stderr("the ranks have ended, and their traces have not all come from host2 yet; Ctrl-C leaves out the rest");
  run->send(SIGINT);
  const Outcome outcome = run->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("ringlet run: the trace lacks the end of rank 1 on host2, behind its first ") &&
                              Contains(" KiB, which had not come when a signal ended the wait for it\n") &&
                              Contains("the trace is in '" + file + "': ") && Contains(" of 3 processes"));
  home.agents[1]->send(SIGCONT);
  home.end();
}

TEST_CASE("where multicast is blocked, run and discover ask the machine's own `ringlet up`, and peers tell of peers") {
  if (!networks_are_here()) return;
  const Home home({RINGLET_COLLECTIVE_LOOP}, false);
  for (const int host : {0, 1}) {
    const Outcome outcome = home.run({}, {RINGLET_COLLECTIVE_LOOP, "--twice"}, kToken, host)->finish();
    CAPTURE(host, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err == "ringlet run: 3 ranks: 1 on host1, 1 on host2, 1 on host3\n");
    const Process looking = home.network.host(host).run({"discover", "--once", "--wait", "1"});
    const Outcome seen = looking->finish();
    for (const char* name : {"host1", "host2", "host3"}) CHECK_THAT(seen.out, Contains(name));
  }
  const Process alone = home.network.host(1).run(
      {"run", "--group", "home", "--peer", home.network.host(2).address(), "--", RINGLET_COLLECTIVE_LOOP, "--twice"},
      {{"RINGLET_TOKEN", kToken}});
  alone->close_stdin();
  CHECK_THAT(alone->finish().err, Contains("3 ranks: 1 on host1, 1 on host2, 1 on host3"));
}

TEST_CASE("a firewall that lets in the documented ports is enough") {
  if (!networks_are_here()) return;
  const int walled = GENERATE(0, 1, 2);
  CAPTURE(walled);
  const Home home({RINGLET_COLLECTIVE_LOOP}, false);
  deny_inbound(home.network.host(walled), "udp dport 47174; tcp dport 47174-47238");
  const Outcome outcome = home.run({}, {RINGLET_COLLECTIVE_LOOP, "--twice"})->finish();
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("sum 81"));
}

TEST_CASE("a firewall that lets nobody in is told of within 5 s, with what to type") {
  if (!networks_are_here()) return;
  const int walled = GENERATE(0, 1, 2);
  CAPTURE(walled);
  const Home home({RINGLET_COLLECTIVE_LOOP}, false);
  deny_inbound(home.network.host(walled), "");
  const Process job = home.run({"--env", "RINGLET_CONNECT_TIMEOUT_MS=8000"}, {RINGLET_COLLECTIVE_LOOP, "--twice"});
  const auto start = std::chrono::steady_clock::now();
  job->wait_for_stderr("ringlet doctor");
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  std::printf("host%d lets nobody in: told after %.1f s\n", walled + 1, waited.count());
  const Outcome outcome = job->finish();
  CAPTURE(outcome.err);
  // On the first host is rank 0, where all meet. The others are left out, since they are not found.
  CHECK(outcome.exit_code == (walled == 0 ? 128 + SIGABRT : 0));
}

TEST_CASE("what is not allowed is refused, with the line that its owner would have to add") {
  if (!networks_are_here()) return;
  Home home(std::vector<std::string>{});
  const std::string program = RINGLET_RANK_PROGRAM;
  const Outcome refused = home.run({"--machines", "host2"}, {program, "lines", "1"})->finish();
  CHECK(refused.exit_code == 126);
  CHECK(refused.out.empty());
  CHECK(refused.err == "ringlet run: host2: " + program +
                           " is not allowed; the machine's owner would have to start `ringlet up` with --allow " + program +
                           ", or add this line to " + home.list() + " there: " + program + "\n");
  const Outcome shell = home.run({"--machines", "host2"}, {"/bin/sh", "-c", ":"})->finish();
  CHECK_THAT(shell.err, Contains("/bin/sh is not allowed, and should not be") && !Contains("--allow"));
  home.agents[1]->wait_for_stdout("refused ");
  std::ofstream(home.list()) << program << " lines *\n";
  const Outcome other = home.run({"--machines", "host2"}, {program, "flood", "1"})->finish();
  CHECK(other.exit_code == 126);
  CHECK_THAT(other.err, Contains("host2: " + program + " is allowed there with other arguments only: lines *\n"));
  const Outcome preload = home.run({"--machines", "host2", "--env", "LD_PRELOAD=x"}, {program, "lines", "1"})->finish();
  CHECK(preload.exit_code == 126);
  CHECK_THAT(preload.err, Contains("LD_PRELOAD: this variable may not be set") && Contains("ringlet up` with --allow-env LD_PRELOAD"));
  home.agents[1]->wait_for_stdout(": --env LD_PRELOAD");
  const Outcome threads = home.run({"--machines", "host2", "--env", "OMP_NUM_THREADS=1"}, {program, "lines", "1"})->finish();
  CHECK(threads.exit_code == 0);
  const Outcome stranger = home.run({}, {program, "lines", "1"}, "another-token-of-another-group")->finish();
  CHECK(stranger.exit_code == 1);
  CHECK_THAT(stranger.err, Contains("host1 cannot be reached") && Contains("the tokens differ") && Contains("saved for group home"));
  const Outcome nobody = home.run({"--machines", "host9", "--wait", "1"}, {program})->finish();
  CHECK(nobody.exit_code == 3);
  CHECK_THAT(nobody.err, Contains("host9 not found in group home within 1 s"));
  home.end();
}

TEST_CASE("names that mean no machine, or two, are told") {
  if (!networks_are_here()) return;
  Home home;
  const Process twin = home.network.host(0).run({"up", "--group", "home", "--name", "host3"}, {{"RINGLET_TOKEN", kToken}});
  twin->wait_for_stdout("appeared in group home", 3);
  const std::string told = "2 machines of group home are called host3; start `ringlet up` on one of them with another --name";
  const Outcome named = home.run({"--machines", "host3"}, {RINGLET_COLLECTIVE_LOOP, "--twice"})->finish();
  CHECK(named.exit_code == 3);
  CHECK_THAT(named.err, Contains(told));
  const Outcome all = home.run({"--program", "host9=/bin/true"}, {RINGLET_COLLECTIVE_LOOP, "--twice"})->finish();
  CHECK_THAT(all.err, Contains(told) && Contains("--program host9=/bin/true: no machine of that name takes part"));
  const NetworkHost& host = home.network.host(0);
  const std::string others = "heard in other groups: home (";
  const Process run = host.run({"run", "--group", "hone", "--wait", "1", "--", "/bin/true"}, {{"RINGLET_TOKEN", kToken}});
  CHECK_THAT(run->finish().err, Contains("0 of 1 machine found in group hone") && Contains(others));
  const Process discover = host.run({"discover", "--once", "--group", "hone", "--wait", "1"}, {});
  CHECK_THAT(discover->finish().err, Contains("no machine of group hone was heard") && Contains(others));
  twin->send(SIGTERM);
  twin->finish();
  home.end();
}

TEST_CASE("an agent goes on through ten thousand bad connections") {
  if (!networks_are_here()) return;
  Home home;
  const Json seen = Json::parse(home.network.host(0).run({"discover", "--once", "--json", "--group", "home"})->finish().out);
  const auto host1 = std::find_if(seen["machines"].begin(), seen["machines"].end(), [](const Json& one) { return one["name"] == "host1"; });
  REQUIRE(host1 != seen["machines"].end());
  const auto port = (*host1)["port"].get<std::uint16_t>();
  const Process before = home.run({}, {RINGLET_COLLECTIVE_LOOP});
  before->wait_for_stdout("met\n", 3);
  bool flooded = false;
  home.network.host(0).within([&] { flooded = flood(port, 10'000); });
  CHECK(flooded);
  before->send(SIGINT);
  CHECK(before->finish().exit_code == 128 + SIGINT);
  const Outcome after = home.run({}, {RINGLET_COLLECTIVE_LOOP, "--twice"})->finish();
  CAPTURE(after.out, after.err);
  CHECK(after.exit_code == 0);
  CHECK(sorted_lines(after.out).front() == "[0 host1] sum 81");
  home.end();
}

TEST_CASE("who runs a job is killed, and nothing of it is left") {
  if (!networks_are_here()) return;
  Home home;
  const Process run = home.run({}, {RINGLET_COLLECTIVE_LOOP});
  run->wait_for_stdout("met\n", 3);
  run->send(SIGKILL);
  for (int rank = 0; rank < 3; ++rank) wait_for_death(pid_of(run->out(), rank));
  for (const Process& agent : home.agents) {
    agent->wait_for_stdout(" ended: ");
    // The system resets the connection where the killed process had not read all that came, and the agent may notice that as it writes.
    CHECK_THAT(agent->out(), Contains(" closed the connection without announcing that") || Contains("connection reset by peer") ||
                                 Contains("broken pipe"));
  }
  home.end();
}

TEST_CASE("an agent is killed: its ranks die, and it is named") {
  if (!networks_are_here()) return;
  Home home;
  const Process run = home.run({}, {RINGLET_COLLECTIVE_LOOP});
  run->wait_for_stdout("met\n", 3);
  home.agents[1]->send(SIGKILL);
  const Outcome outcome = run->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("ringlet run: lost host2 (") && Contains("; to be ended where they run: rank 1"));
  for (int rank = 0; rank < 3; ++rank) wait_for_death(pid_of(outcome.out, rank));
  // If any process still held the agent's lifeline, this would wait for it.
  CHECK(home.agents[1]->finish().exit_code == -SIGKILL);
  home.agents.erase(home.agents.begin() + 1);
  home.end();
}

TEST_CASE("an agent is ended by its owner: its job is told so, and ends") {
  if (!networks_are_here()) return;
  Home home;
  const Process run = home.run({}, {RINGLET_COLLECTIVE_LOOP});
  run->wait_for_stdout("met\n", 3);
  home.agents[1]->send(SIGINT);
  const Outcome outcome = run->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("ringlet run: host2: its owner ended `ringlet up`") && !Contains("lost"));
  CHECK(home.agents[1]->finish().exit_code == 0);
  home.agents.erase(home.agents.begin() + 1);
  home.end();
}

TEST_CASE("an agent whose lines nobody reads any more keeps its jobs, and says goodbye when they have ended") {
  if (!networks_are_here()) return;
  const Home home;
  home.agents[1]->close_stdout();
  const Process job = home.run({}, {RINGLET_COLLECTIVE_LOOP});
  for (int rank = 0; rank < 3; ++rank) job->wait_for_stdout("[" + std::to_string(rank) + " host" + std::to_string(rank + 1) + "] met");
  home.agents[1]->wait_for_stderr("ringlet up: its lines cannot be written any more; it takes no new jobs, and ends when none runs here");
  const Outcome refused = home.run({"--machines", "host2"}, {RINGLET_COLLECTIVE_LOOP})->finish();
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.err, Contains("host2") && Contains("its owner cannot see its lines any more"));
  job->send(SIGTERM);
  CHECK(job->finish().exit_code == 128 + SIGTERM);
  const Outcome outcome = home.agents[1]->finish();
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 128 + SIGPIPE);
  CHECK_THAT(outcome.err, Contains("cannot write to standard output: Broken pipe"));
  home.agents[2]->wait_for_stdout("host2 left");
}

TEST_CASE("a rank is killed, and gives the exit code") {
  if (!networks_are_here()) return;
  Home home;
  const Process run = home.run({}, {RINGLET_COLLECTIVE_LOOP});
  run->wait_for_stdout("met\n", 3);
  const pid_t victim = pid_of(run->out(), 2);
  REQUIRE(::kill(victim, SIGKILL) == 0);
  const Outcome outcome = run->finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 128 + SIGKILL);
  CHECK_THAT(outcome.err, Contains("ringlet run: rank 2 on host3 (pid " + std::to_string(victim) + ") was killed by SIGKILL"));
  for (int rank = 0; rank < 3; ++rank) wait_for_death(pid_of(outcome.out, rank));
  home.end();
}

TEST_CASE("signals end a job, and output comes whole") {
  if (!networks_are_here()) return;
  Home home({"/bin/sh", RINGLET_RANK_PROGRAM});
  const Process run = home.run({}, {"/bin/sh", "-c", "echo ready; exec sleep 1000"});
  run->wait_for_stdout("ready\n", 3);
  run->send(SIGINT);
  const Outcome outcome = run->finish();
  CHECK(outcome.exit_code == 128 + SIGINT);
  CHECK_THAT(outcome.err, Contains("got SIGINT; stopped ranks 0, 1, 2"));

  const Outcome lines = home.run({"--no-prefix"}, {RINGLET_RANK_PROGRAM, "flood", "1000000"})->finish();
  CHECK(lines.exit_code == 0);
  CHECK(std::count(lines.out.begin(), lines.out.end(), '0') >= 3'000'000);
  CHECK(sorted_lines(lines.err) ==
        std::vector<std::string>{"done", "done", "done", "ringlet run: 3 ranks: 1 on host1, 1 on host2, 1 on host3"});
  home.end();
}

TEST_CASE("mistakes of run are told, exit code 2") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"run", "--", "/bin/true"}, "--group is required"},
      {{"run", "--group", "a"}, "no `--` found"},
      {{"run", "--group", "a", "--"}, "no program to start"},
      {{"run", "--group", "a", "--", "true"}, "give the program's path"},
      {{"run", "--group", "a", "--env", "A B=x", "--", "/bin/true"}, "--env A B=x: A B is no name of a variable"},
      {{"run", "--group", "a", "--env", "RINGLET_TOKEN=x", "--", "/bin/true"}, "--env RINGLET_TOKEN: each job gets a token of its own"},
      {{"run", "--group", "a", "--env", "RINGLET_RANK=1", "--", "/bin/true"}, "--env RINGLET_RANK=1"},
      {{"run", "--group", "a", "-n", "0", "--", "/bin/true"}, "-n 0"},
      {{"run", "--group", "a", "-n", "2", "--per-machine", "2", "--", "/bin/true"}, "give one of the two"},
      {{"run", "--group", "a", "--at-least", "0", "--", "/bin/true"}, "--at-least 0"},
      {{"run", "--group", "a", "--cwd", "data", "--", "/bin/true"}, "--cwd data"},
      {{"run", "--group", "a", "--program", "b=c", "--", "/bin/true"}, "--program b=c"},
      {{"run", "--group", "a", "--machines", "", "--", "/bin/true"}, "--machines: a name is empty"},
      {{"run", "--group", "a", "--machines", "b", "--program", "c=/d", "--", "/bin/true"}, "--program c=/d: --machines does not name c"},
      {{"up", "--group", "a", "--allow", "train"}, "--allow train"},
      {{"up", "--group", "a", "--allow-env", "*"}, "--allow-env *: give the name"},
      {{"up", "--group", "a", "--allow-env", "RINGLET_RANK"}, "--allow-env RINGLET_RANK: Ringlet itself sets"},
      {{"up", "--group", "a", "--max-ranks", "0"}, "--max-ranks 0"},
      {{"up", "--group", "a", "--listen", "nowhere"}, "--listen"},
  };
  for (const auto& [arguments, told] : mistakes) {
    const Outcome outcome = run_command(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(told));
  }
  const Outcome without = run_command({"run", "--group", "a", "--", "/bin/true"});
  CHECK(without.exit_code == 1);
  CHECK_THAT(without.err, Contains("there is no token"));
}
