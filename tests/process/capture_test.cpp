// Tests of what somebody on the way between the ranks sees of a job.
#include <catch2/catch.hpp>

#include "tests/launch/command_process.hpp"
#include "tests/process/recording_proxy.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

const std::string kToken = "a-token-that-nobody-may-see-1234";
const std::string kPattern = "a pattern that shows where it is not encrypted; ";

struct Captured {
  Outcome outcome;
  std::string bytes;
};

/// Runs two ranks with a token, and a proxy between them that rank 1 takes for rank 0.
Captured run_through_a_proxy(const std::vector<std::pair<std::string, std::string>>& settings) {
  RecordingProxy proxy;
  std::vector<std::pair<std::string, std::string>> environment{{"RINGLET_TOKEN", kToken}, {"RINGLET_PEER_MEMORY", "off"}};
  environment.insert(environment.end(), settings.begin(), settings.end());
  CommandProcess launch({"launch", "-n", "2", "--no-prefix", "--", "sh", "-c",
                         "[ -z \"$WITHOUT_TOKEN\" ] || unset RINGLET_TOKEN; if [ $RINGLET_RANK = 0 ]; then echo \"at $RINGLET_COORDINATOR "
                         "end\"; else export RINGLET_COORDINATOR=127.0.0.1:" +
                             std::to_string(proxy.port()) + "; fi; exec \"$0\" \"$1\"",
                         RINGLET_PATTERN_RANK, kPattern},
                        environment);
  launch.wait_for_stdout(" end\n");
  const std::string& out = launch.out();
  const std::size_t colon = out.find(':', out.find("at "));
  proxy.pass_on_to(static_cast<std::uint16_t>(std::stoi(out.substr(colon + 1))));
  Captured captured{launch.finish(), {}};
  captured.bytes = all_bytes(proxy.finish());
  return captured;
}

}  // namespace

TEST_CASE("who listens on the network sees no token, no tensor and no control message") {
  const Captured captured = run_through_a_proxy({});
  CAPTURE(captured.outcome.out, captured.outcome.err);
  REQUIRE(captured.outcome.exit_code == 0);
  CHECK_THAT(captured.outcome.out, Contains("right"));
  // All bytes between the ranks have come this way.
  CHECK(captured.bytes.size() > 900'000);
  for (const std::string& secret : {kToken, kPattern, kPattern.substr(10, 12), std::string("127.0.0.1")})
    CHECK(captured.bytes.find(secret) == std::string::npos);
}

TEST_CASE("switched off, all but the token is seen") {
  const Captured captured = run_through_a_proxy({{"RINGLET_ENCRYPT", "off"}});
  CAPTURE(captured.outcome.out, captured.outcome.err);
  REQUIRE(captured.outcome.exit_code == 0);
  CHECK(captured.bytes.size() > 900'000);
  CHECK(captured.bytes.find(kToken) == std::string::npos);
  CHECK(captured.bytes.find(kPattern + kPattern) != std::string::npos);
  CHECK(captured.bytes.find("127.0.0.1") != std::string::npos);
}

TEST_CASE("without a token the links can be encrypted, too") {
  const Captured captured = run_through_a_proxy({{"WITHOUT_TOKEN", "1"}, {"RINGLET_ENCRYPT", "on"}});
  CAPTURE(captured.outcome.out, captured.outcome.err);
  REQUIRE(captured.outcome.exit_code == 0);
  CHECK(captured.bytes.find(kPattern) == std::string::npos);
}

TEST_CASE("a job on one machine has a token of its own, so that who has none stays out, and is not encrypted by it") {
  const Outcome told = run_command({"launch", "-n", "1", "--no-prefix", "--", "sh", "-c", "echo \"${#RINGLET_TOKEN} $RINGLET_ENCRYPT\""});
  CHECK_THAT(told.out, Contains("34 off"));
  const Outcome outcome = run_command({"launch", "-n", "2", "--no-prefix", "--", "sh", "-c",
                                       "[ $RINGLET_RANK = 0 ] || unset RINGLET_TOKEN; exec \"$0\" x", RINGLET_PATTERN_RANK},
                                      {{"RINGLET_CONNECT_TIMEOUT_MS", "3000"}});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code != 0);
  CHECK_THAT(outcome.out, Contains("token"));
}

TEST_CASE("ranks that take different ciphers meet where they have one in common") {
  const auto run = [](const std::string& other) {
    return run_command(
        {"launch", "-n", "2", "--no-prefix", "--", "sh", "-c",
         "[ $RINGLET_RANK = 0 ] || export RINGLET_CIPHER=" + other + "; exec \"$0\" x", RINGLET_PATTERN_RANK},
        {{"RINGLET_TOKEN", kToken}, {"RINGLET_ENCRYPT", "on"}, {"RINGLET_CIPHER", "chacha20"}, {"RINGLET_CONNECT_TIMEOUT_MS", "3000"}});
  };
  CHECK(run("auto").exit_code == 0);
  const Outcome refused = run("aes256gcm");
  CAPTURE(refused.out, refused.err);
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.out, Contains("RINGLET_CIPHER") && Contains("aes256gcm") && Contains("chacha20"));
}

TEST_CASE("ranks that do not agree on encryption say so, and what to set") {
  const Outcome outcome = run_command({"launch", "-n", "2", "--no-prefix", "--", "sh", "-c",
                                       "[ $RINGLET_RANK = 0 ] || export RINGLET_ENCRYPT=off; exec \"$0\" x", RINGLET_PATTERN_RANK},
                                      {{"RINGLET_TOKEN", kToken}, {"RINGLET_CONNECT_TIMEOUT_MS", "3000"}});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code != 0);
  CHECK_THAT(outcome.out,
             Contains("this rank does not encrypt its links") && Contains("RINGLET_ENCRYPT=off") && Contains("RINGLET_ENCRYPT=on"));
  CHECK_THAT(outcome.out + outcome.err, !Contains(kToken));
}
