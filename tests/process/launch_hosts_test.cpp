#include <dirent.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/process/ssh_hosts.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

namespace {

using Process = std::unique_ptr<CommandProcess>;
using Words = SshHosts::Words;

constexpr char kToken[] = "4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16";

/// Returns whether `text` is on the command line of any process.
bool on_a_command_line(const std::string& text) {
  bool found = false;
  DIR* processes = ::opendir("/proc");
  REQUIRE(processes != nullptr);
  while (const dirent* entry = ::readdir(processes)) {
    std::ifstream file("/proc/" + std::string(entry->d_name) + "/cmdline", std::ios::binary);
    const std::string line(std::istreambuf_iterator<char>(file), {});
    found = found || line.find(text) != std::string::npos;
  }
  ::closedir(processes);
  return found;
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("four ranks on three hosts meet, and their sums are right") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const Outcome outcome =
      hosts.run(kAllHosts + Words{"--no-prefix"}, {RINGLET_COMMAND, "bench", "--json", "--sizes", "1KiB,1MiB", "--seconds", "0.05"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  std::istringstream lines(outcome.out);
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    const Json row = Json::parse(line);
    CHECK(row["ranks"] == 4);
    // Two of them share a host.
    CHECK(row["algorithm"] == (rows == 0 ? "doubling" : "machines"));
  }
  CHECK(rows == 2);

  // The launcher's user has come by ssh, too, which says nothing of how the ranks meet.
  const Outcome told = hosts.run(kAllHosts + Words{"--env", "K=v v"},
                                 script("echo $RINGLET_RANK of $RINGLET_WORLD_SIZE at $RINGLET_COORDINATOR, $K; echo again >&2"),
                                 {{"SSH_CONNECTION", "192.0.2.7 50000 192.0.2.8 22"}});
  CAPTURE(told.out, told.err);
  CHECK(told.exit_code == 0);
  const Words out = sorted_lines(told.out);
  REQUIRE(out.size() == 4);
  CHECK_THAT(out[0], StartsWith("[0 10.77.0.1] 0 of 4 at 10.77.0.1:") && Contains(", v v"));
  CHECK_THAT(out[2], StartsWith("[2 10.77.0.2] 2 of 4 at 10.77.0.1:"));
  CHECK_THAT(out[3], StartsWith("[3 10.77.0.3] 3 of 4 at 10.77.0.1:"));
  CHECK(sorted_lines(told.err).at(1) == "[1 10.77.0.2] again");
}

TEST_CASE("the traces of all hosts become one file here") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const std::string file = found->directory() + "/trace.json";
  const Outcome outcome = found->run(kAllHosts + Words{"--trace", file}, {RINGLET_COLLECTIVE_LOOP, "--rounds", "12"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("the trace is in '" + file + "': ") && Contains(" of 4 processes"));
  std::set<int> ranks;
  const Json json = Json::parse(read_file(file));
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "all_reduce") ranks.insert(event["pid"].get<int>());
    if (event["name"] == "ringlet_trace") CHECK(event["args"]["aligned"] == true);
  }
  CHECK(ranks == std::set<int>{0, 1, 2, 3});
}

TEST_CASE("words and variables arrive as they are, by a path of any letters") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const std::string path = hosts.directory() + "/it's \"here\" $HOME \\n";
  std::filesystem::create_symlink(RINGLET_COMMAND, path);
  const std::string odd = "two  words\n'single' \"double\" $HOME `id` \\ *;";
  const Outcome outcome = hosts.run({"--hosts", "10.77.0.2", "--no-prefix", "--remote-ringlet", path, "--env", "K=" + odd},
                                    {"/bin/sh", "-c", "printf '%s|%s|%s|' \"$K\" \"$@\"", "sh", odd, ""});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == odd + "|" + odd + "||");
}

TEST_CASE("hostfiles of all forms start ranks, with rank 0 on another machine, too") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const std::string path = hosts.directory() + "/hosts";
  const auto run = [&](const std::string& text) {
    write_file(path, text);
    const Outcome outcome = hosts.run({"--hostfile", path}, script("echo $RINGLET_RANK $RINGLET_COORDINATOR $A $B $RINGLET_WARN_MS; pwd"),
                                      {{"RINGLET_WARN_MS", "9"}});
    CAPTURE(text, outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  CHECK_THAT(run(R"([{"ssh": "10.77.0.2", "ips": ["10.78.0.2"], "rdma": []}, {"ssh": "10.77.0.3", "ips": ["10.78.0.3"], "rdma": []}])"),
             Contains("[0 10.77.0.2] 0 10.78.0.2:") && Contains("[1 10.77.0.3] 1 10.78.0.2:"));
  // Only ssh's configuration knows this name; the other ranks get the address that it stands for.
  CHECK_THAT(run(R"({"backend": "ring", "envs": ["A=1"], "hosts": [{"ssh": "nickname", "ips": []}, {"ssh": "10.77.0.1", "ips": []}]})"),
             Contains("[0 nickname] 0 10.77.0.2:") && Contains(" 1 9\n"));
  CHECK_THAT(run(R"([{"ssh": "10.77.0.3", "slots": 2, "env": {"B": "2", "RINGLET_WARN_MS": "7"}, "cwd": "/usr"}])"),
             Contains("[1 10.77.0.3] 1 10.77.0.3:") && Contains(" 2 7\n") && Contains("/usr"));
  CHECK_THAT(run("10.77.0.3 slots=2\n10.77.0.1\n"), Contains("[2 10.77.0.1] 2 10.77.0.3:"));
  const Outcome wrong = hosts.run({"--hostfile", path, "--hosts", "a"}, {"true"});
  CHECK(wrong.exit_code == 2);
}

TEST_CASE("what ssh cannot do is told in words, for all hosts at once, before anything starts") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const std::string proof = hosts.directory() + "/started";
  const auto refusal = [&](const Words& options, const Words& program) {
    const Outcome outcome = hosts.run(options, program);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 1);
    CHECK_FALSE(std::ifstream(proof).good());
    return outcome.err;
  };
  const Words touch = script("touch " + proof);
  CHECK_THAT(refusal({"--hosts", "10.77.0.2,no-such-host.invalid,10.77.0.1"}, touch),
             Contains("no-such-host.invalid: there is no machine of that name"));
  // No ssh server listens on the first host.
  CHECK_THAT(refusal({"--hosts", "10.77.0.2,root@10.77.0.1"}, touch), Contains("root@10.77.0.1: no ssh server listens there"));
  CHECK_THAT(refusal({"--hosts", "10.77.0.1,10.77.0.2,10.77.0.3", "--ssh", hosts.ssh("client-wrong-key")}, touch),
             Contains("10.77.0.2: ssh would ask") && Contains("10.77.0.3: ssh would ask") && Contains("ssh-copy-id 10.77.0.2"));
  CHECK_THAT(refusal({"--hosts", "10.77.0.2", "--ssh", hosts.ssh("client-knows-nobody")}, touch),
             Contains("its key is not known here yet") && Contains("10.77.0.2 true"));
  CHECK_THAT(refusal({"--hosts", "10.77.0.2", "--remote-ringlet", "/no/such/ringlet"}, touch),
             Contains("10.77.0.2: there is no `ringlet` there at /no/such/ringlet"));
  const std::string other = hosts.directory() + "/other";
  const auto speaks = [&](const std::string& text) {
    write_file(other, "#!/bin/sh\n" + text);
    std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  };
  speaks("echo 'ringlet: no subcommand internal-deputy' >&2; exit 2\n");
  CHECK_THAT(refusal({"--hosts", "10.77.0.1,10.77.0.2", "--remote-ringlet", other}, touch),
             Contains("10.77.0.2: `ringlet` there ended with code 2 before it answered: ringlet: no subcommand") &&
                 Contains("are the versions the same?"));
  speaks("echo welcome; printf '\\1ringlet-deputy\\n\\4\\0\\0\\0\\22\\2\\10\\11'; read x\n");
  CHECK_THAT(refusal({"--hosts", "10.77.0.2", "--remote-ringlet", other}, touch),
             Contains("10.77.0.2: its `ringlet` speaks version 9 of the protocol of jobs") && Contains("install the same on both"));
  CHECK_THAT(refusal({"--hosts", "10.77.0.2", "--ssh", "/no/such/ssh"}, touch), Contains("cannot start '/no/such/ssh'"));
  const Outcome directory = hosts.run({"--hosts", "10.77.0.1,10.77.0.2", "--cwd", "/no/such"}, touch);
  CHECK(directory.exit_code == 2);
  CHECK_THAT(directory.err, Contains("--cwd /no/such: there is no such directory"));
  const Outcome program = hosts.run({"--hosts", "10.77.0.2"}, {"no-such-program"});
  CHECK(program.exit_code == 127);
  CHECK_THAT(program.err, Contains("cannot run 'no-such-program' on 10.77.0.2"));
}

TEST_CASE("the token is on no command line and in no output; without one the job gets its own") {
  const SshHosts* const found = SshHosts::find();
  if (found == nullptr) return;
  const SshHosts& hosts = *found;
  const Process shown = hosts.start(
      kAllHosts, script("[ \"$RINGLET_TOKEN\" = " + std::string("4n7x-0c5r-9pqa-te2v'-hm8j-w3ky-bz16'") + " ] && echo same; read x"),
      {{"RINGLET_TOKEN", kToken}});
  shown->wait_for_stdout("same", 4);
  shown->close_stdin();
  const Outcome outcome = shown->finish();
  CHECK_THAT(outcome.out + outcome.err, !Contains(kToken));

  const Process kept =
      hosts.start(kAllHosts + Words{"--stdin", "3"}, script("echo here; if [ $RINGLET_RANK = 3 ]; then read x; echo got $x; fi"),
                  {{"RINGLET_TOKEN", kToken}});
  kept->wait_for_stdout("here", 4);
  CHECK_FALSE(on_a_command_line(kToken));
  kept->write_stdin("a line\n");
  kept->wait_for_stdout("[3 10.77.0.3] got a line");
  CHECK(kept->finish().exit_code == 0);

  const Outcome fresh = hosts.run(kAllHosts, script("echo ${#RINGLET_TOKEN}"));
  for (const std::string& line : sorted_lines(fresh.out)) CHECK_THAT(line, Catch::EndsWith(" 34"));
  const Outcome refused = hosts.run(kAllHosts + Words{"--env", "RINGLET_TOKEN=x"}, {"true"});
  CHECK(refused.exit_code == 2);
}
