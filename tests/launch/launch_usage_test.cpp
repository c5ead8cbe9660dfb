#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {
struct Mistake {
  std::vector<std::string> arguments;
  std::string told;
};
}  // namespace

TEST_CASE("a mistake on the command line is told with its value, exit code 2") {
  const std::vector<Mistake> mistakes{
      {{"launch", "-n", "0", "--", "true"}, "-n 0: the number of ranks must be from 1 to"},
      {{"launch", "-n", "-1", "--", "true"}, "-n -1: the number of ranks"},
      {{"launch", "-n", "100000", "--", "true"}, "-n 100000: the number of ranks"},
      {{"launch", "-n", "99999999999999", "--", "true"}, "99999999999999"},
      {{"launch", "-n", "two", "--", "true"}, "two"},
      {{"launch", "-n", "--", "true"}, "--ranks"},
      {{"launch", "--", "true"}, "--ranks is required"},
      {{"launch", "-n", "2"}, "no `--` found"},
      {{"launch", "-n", "2", "true"}, "no `--` found"},
      {{"launch", "-n", "2", "--"}, "no program to start"},
      {{"launch", "-n", "2", "--", ""}, "no program to start"},
      {{"launch", "-n", "2", "extra", "--", "true"}, "extra"},
      {{"launch", "-n", "2", "--no-such", "--", "true"}, "--no-such"},
      {{"launch", "-n", "2", "--env", "NAME", "--", "true"}, "--env NAME: write it as NAME=VALUE"},
      {{"launch", "-n", "2", "--env", "=x", "--", "true"}, "--env =x"},
      {{"launch", "-n", "2", "--env", "RINGLET_RANK=1", "--", "true"}, "RINGLET_RANK=1"},
      {{"launch", "-n", "2", "--grace", "-1", "--", "true"}, "--grace -1"},
      {{"launch", "-n", "2", "--grace", "nan", "--", "true"}, "--grace nan"},
      {{"launch", "-n", "2", "--linger", "1e9", "--", "true"}, "--linger 1000000000"},
      {{"launch", "-n", "2", "--stdin", "2", "--", "true"}, "--stdin 2: there is no such rank"},
      {{"launch", "-n", "2", "--stdin", "me", "--", "true"}, "--stdin me"},
      {{"launch", "--elastic", "4:2", "--", "true"}, "--elastic 4:2: MIN is more than MAX; perhaps 2:4 is meant"},
      {{"launch", "--elastic", "0:3", "--", "true"},
       "--elastic 0:3: write it as MIN:MAX, such as 2:8, with numbers of ranks from 1 to 1024"},
      {{"launch", "--elastic", "-1:3", "--", "true"}, "-1:3"},
      {{"launch", "--elastic", "a:b", "--", "true"}, "--elastic a:b: write it as MIN:MAX"},
      {{"launch", "--elastic", "2:", "--", "true"}, "--elastic 2:: write it as MIN:MAX"},
      {{"launch", "--elastic", ":2", "--", "true"}, "--elastic :2: write it as MIN:MAX"},
      {{"launch", "--elastic", "2", "--", "true"}, "--elastic 2: write it as MIN:MAX"},
      {{"launch", "--elastic", "2:3x", "--", "true"}, "--elastic 2:3x: write it as MIN:MAX"},
      {{"launch", "--elastic", "2:99999", "--", "true"}, "--elastic 2:99999: write it as MIN:MAX"},
      {{"launch", "--elastic", "2:300", "--", "true"}, "-n 300: the number of ranks must be from 1 to 224"},
      {{"launch", "--elastic", "3:4", "-n", "2", "--", "true"},
       "--elastic 3:4: the job would begin with 2 ranks, by -n or the hosts' slots; have it begin with 3 to 4"},
      {{"launch", "--elastic", "1:2", "-n", "3", "--", "true"}, "begin with 3 ranks"},
      {{"launch", "--elastic", "3:4", "--hosts", "a,b", "--", "true"}, "--elastic 3:4: the job would begin with 2 ranks"},
      {{"launch", "--elastic", "2:4", "--hosts", "a", "--", "true"}, "--elastic 2:4: the job would begin with 1 rank, by"},
      {{"launch", "--elastic", "2:4", "--restarts", "-1", "--", "true"}, "--restarts -1: give a number from 0 to 1000000"},
      {{"launch", "--elastic", "2:4", "--restarts", "x", "--", "true"}, "--restarts x: give a"},
      {{"launch", "-n", "2", "--restarts", "1", "--", "true"}, "--restarts goes with --elastic"},
      {{"launch", "--elastic", "2:4", "--min-wait", "-1", "--", "true"}, "--min-wait -1: give seconds from 0 to"},
      {{"launch", "--elastic", "-n", "2", "--min-wait", "1", "--", "true"}, "--min-wait 1: it goes with bounds"},
      {{"run", "--group", "home", "--elastic", "4:2", "--", "/bin/true"}, "--elastic 4:2: MIN is more than MAX"},
      {{"run", "--group", "home", "--elastic", "3:4", "-n", "2", "--", "/bin/true"}, "--elastic 3:4: the job would begin with 2 ranks"},
      {{"serve", "--elastic", "4:2", "--", "true"}, "--elastic 4:2: MIN is more than MAX"},
      {{"serve", "--elastic", "3:4", "-n", "2", "--", "true"}, "--elastic 3:4: the job would begin with 2 ranks"},
      {{"serve", "--no-elastic", "--elastic", "3:4", "--", "true"}, "--no-elastic and --elastic: give one of them"},
      {{"launch", "-n", "2", "--cwd", "/no/such", "--", "true"}, "--cwd /no/such: there is no such directory"},
      {{"launch", "-n", "2", "--ssh", "ssh -v", "--", "true"}, "--ssh ssh -v: it is for launches on several machines"},
      {{"launch", "--hosts", "a", "--hostfile", "b", "--", "true"}, "--hosts and --hostfile are both given"},
      {{"launch", "--hosts", "a,b:x", "--", "true"}, "'x' is not a number of ranks"},
      {{"launch", "--hosts", "a:200,b:200,c:200,d:200,e:225", "--", "true"}, "225 ranks on one host"},
      {{"launch", "--hosts", "a:224,b:224,c:224,d:224,e:224", "--", "true"}, "1120 ranks on all hosts together"},
      {{"launch", "--hostfile", "/no/such", "--", "true"},
       "--hostfile /no/such: it cannot be read: No such file or directory; check the path"},
      {{"launch", "--hostfile", "/dev/zero", "--", "true"}, "--hostfile /dev/zero: it cannot be read: it is longer than 1048576 bytes"},
      {{"launch", "--hostfile", "/dev/null", "--", "true"}, "names no host"},
      {{"launch", "--hosts", "a", "--coordinator", "b:x", "--", "true"}, "--coordinator b:x: write HOST or HOST:PORT"},
      {{"launch", "--hosts", "a", "--ssh", "", "--", "true"}, "--ssh is empty"},
      {{"launch", "--hosts", "a", "--env", "RINGLET_TOKEN=x", "--", "true"}, "other users see the command line"},
      {{"up", "--group", "home", "--interface", "nope0"}, "--interface 'nope0': this machine has no interface of that name; it has lo"},
      {{"discover", "--once", "--interface", "nope0"}, "--interface 'nope0'"},
      {{"run", "--group", "home", "--interface", "nope0", "--", "/bin/true"}, "--interface 'nope0'"},
      {{"doctor", "--interface", "nope0"}, "--interface 'nope0'"},
      {{"pair", "--interface", "nope0"}, "--interface 'nope0'"},
      {{"launch", "-n", "x", "--", "true"}, "--ranks x: give a number"},
      {{"launch", "-n", "2", "--trace", "", "--", "true"}, "--trace '': give a name, or leave the option out"},
      {{"launch", "-n", "2", "--output-dir", "", "--", "true"}, "--output-dir '': give a name"},
      {{"bench", "--trace", ""}, "--trace '': give a name"},
      {{"serve", "-b", "1.5", "--", "true"}, "--browsers 1.5: give a whole number"},
      {{"discover", "--port", "70000"}, "--port 70000: the number is out of range"},
      {{"bench", "-n", "2"}, "not expected here: -n 2"},
      {{"status", "--pid", "0"}, "--pid 0: give the number of a process"},
      {{"status", "--pid", "abc"}, "--pid abc: give a number"},
      {{"up", "--group", "a/b"}, "--group 'a/b'"},
      {{"--bogus"}, "there is no option '--bogus'"},
      {{"version", "3"}, "3"},
      {{"lanch"}, "did you mean `launch`?"},
      {{"xyzzy"}, "bench, completion, discover, doctor, launch"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = run_command(mistake.arguments);
    CAPTURE(mistake.arguments, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, StartsWith("ringlet") && Contains(mistake.told));
  }
}

TEST_CASE("a program that cannot be run gives one sentence and 127 or 126") {
  TemporaryDirectory directory;
  const std::string script = directory.path() + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  const auto run = [](const std::string& program) { return run_command({"launch", "-n", "3", "--", program, "x"}); };

  const Outcome missing = run("no-such-program");
  CHECK(missing.exit_code == 127);
  CHECK_THAT(missing.err, StartsWith("ringlet launch: cannot run 'no-such-program': No such file or directory"));
  CHECK(sorted_lines(missing.err).size() == 1);

  const Outcome forbidden = run(script);
  CHECK(forbidden.exit_code == 126);
  CHECK(forbidden.err == "ringlet launch: cannot run '" + script + "': Permission denied\n");

  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  CHECK(run(script).exit_code == 127);
  CHECK(run(directory.path()).exit_code == 126);
  CHECK(run(script + "/below").exit_code == 127);
}

TEST_CASE("a program's own 127 is its own") {
  const Outcome outcome = run_script({"-n", "1"}, "exit 127");
  CHECK(outcome.exit_code == 127);
  CHECK_THAT(outcome.err, Contains("rank 0 (pid ") && Contains("exited with code 127"));
}

TEST_CASE("a relative program is looked up in --cwd, a name in the ranks' PATH") {
  TemporaryDirectory directory;
  const std::string script = directory.path() + "/hello";
  std::ofstream(script) << "#!/bin/sh\necho hello $1\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  CHECK(run_command({"launch", "-n", "1", "--cwd", directory.path(), "--", "./hello", "a"}).out == "[0] hello a\n");
  CHECK(run_command({"launch", "-n", "1", "--env", "PATH=" + directory.path(), "--", "hello", "--", "-n"}).out == "[0] hello --\n");
}

TEST_CASE("an empty token file is told as such, and ranks in another directory find a relative one") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/token";
  std::ofstream(path).flush();
  const Outcome empty = run_command({"doctor", "--interface", "lo"}, {{"RINGLET_TOKEN_FILE", path}});
  CHECK(empty.exit_code == 1);
  CHECK_THAT(empty.err, Contains("the token in '" + path + "' (RINGLET_TOKEN_FILE) is empty"));
  std::ofstream(path) << "token-of-this-test-alone";
  const std::string relative = std::filesystem::relative(path).string();
  REQUIRE(relative.front() != '/');
  const Outcome found =
      run_script({"-n", "1", "--no-prefix", "--cwd", "/"}, "cat \"$RINGLET_TOKEN_FILE\"", {{"RINGLET_TOKEN_FILE", relative}});
  CHECK(found.out == "token-of-this-test-alone");
}
