#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/launch/command_process.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// Runs `ringlet ARGUMENTS` by a shell that sends its standard output where `redirection` says.
Outcome run_redirected(const std::string& arguments, const std::string& redirection) {
  const TemporaryDirectory directory;
  const std::string errors = directory.path() + "/errors";
  const std::string line = "cd " + directory.path() + " && RINGLET_TOKEN=token-of-this-test-alone timeout 20 " + RINGLET_COMMAND + " " +
                           arguments + " 2>" + errors + " " + redirection + " </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", read_file(errors)};
}

}  // namespace

TEST_CASE("what cannot be written to standard output is told, with exit code 1") {
  const std::string arguments =
      GENERATE(as<std::string>(), "--help", "launch --help", "version", "version --json", "token", "token --json", "pair --qr",
               "completion bash", "completion --json", "status --json", "discover --once --wait 0.1 --interface lo --json",
               "doctor --wait 0.1 --interface lo", "launch -n 2 -- /bin/echo rank", "launch -n 2 --json -- /bin/echo rank");
  CAPTURE(arguments);
  const Outcome full = run_redirected(arguments, ">/dev/full");
  CAPTURE(full.err);
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Contains("cannot write") && Contains("No space left on device"));
  const Outcome closed = run_redirected(arguments, ">&-");
  CAPTURE(closed.err);
  CHECK(closed.exit_code == 1);
  CHECK_THAT(closed.err, Contains("cannot write") && Contains("Bad file descriptor"));
}

TEST_CASE("what cannot be written to standard error is lost, and the exit code stays") {
  const std::string arguments =
      GENERATE(as<std::string>(), "nonsense", "launch -n 0 -- /bin/true", "launch -n 2 -- /bin/sh -c 'exit 3'", "trace summary /missing",
               "launch --elastic 1:2 -n 2 -- /bin/sh -c '[ $RINGLET_RANK = 0 ] || exit 3'");
  CAPTURE(arguments);
  const Outcome outcome = run_redirected(arguments, "");
  CHECK_FALSE(outcome.err.empty());
  CHECK(run_redirected(arguments, "2>/dev/full").exit_code == outcome.exit_code);
}

TEST_CASE("ranks go on where what they write cannot be kept") {
  const TemporaryDirectory directory;
  const std::string script = "echo one; sleep 0.2; echo two; : >" + directory.path() + "/done.$RINGLET_RANK";
  const std::string redirection = GENERATE(as<std::string>(), ">/dev/full", "2>/dev/full >&2");
  const Outcome outcome = run_redirected("launch -n 2 -- /bin/sh -c '" + script + "'", redirection);
  CAPTURE(redirection, outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(std::filesystem::exists(directory.path() + "/done.0"));
  CHECK(std::filesystem::exists(directory.path() + "/done.1"));
  if (redirection == ">/dev/full")
    CHECK_THAT(outcome.err, Contains("goes on without it") && Contains("not all of the ranks' output was written"));
}

TEST_CASE("output that is lost once all ranks have ended is told by the exit code, too") {
  // A line without an end is written when no more can follow.
  const Outcome full = run_redirected("launch -n 2 -- printf part", ">/dev/full");
  CAPTURE(full.err);
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Contains("not all of the ranks' output was written: No space left on device"));

  // More than a pipe holds, and less than is sent before some is taken.
  const TemporaryDirectory directory;
  const std::string done = directory.path() + "/done";
  CommandProcess process({"launch", "-n", "1", "--", "/bin/sh", "-c", "seq 30000; : >" + done});
  wait_for_condition([&] { return std::filesystem::exists(done); });
  process.close_stdout();
  const Outcome gone = process.finish();
  CHECK(gone.exit_code == 128 + SIGPIPE);
  CHECK_THAT(gone.err, Contains("the reader of the ranks' output went away"));
}

TEST_CASE("a command that runs until a signal comes ends when its standard output is lost") {
  const std::string arguments =
      GENERATE(as<std::string>(), "up --group home --interface lo --json --no-dns-sd", "pair --interface lo", "status --watch --json");
  CAPTURE(arguments);
  const Outcome outcome = run_redirected(arguments, ">/dev/full");
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("cannot write to standard output: No space left on device"));
}

TEST_CASE("a command whose reader goes away ends by SIGPIPE") {
  CommandProcess process({"status", "--watch", "--json"});
  process.wait_for_stdout("worlds");
  process.close_stdout();
  CHECK(process.finish().exit_code == -SIGPIPE);

  CommandProcess discover({"discover", "--interface", "lo"});
  discover.close_stdout();
  CommandProcess up({"up", "--group", "home", "--interface", "lo", "--no-dns-sd"});
  CHECK(discover.finish().exit_code == -SIGPIPE);
  up.send(SIGINT);
  CHECK(up.finish().exit_code == 0);
}
