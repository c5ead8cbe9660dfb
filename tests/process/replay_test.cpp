// Tests what a group that is meeting tells diallers who do not belong to it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>

#include "tests/launch/command_process.hpp"
#include "tests/process/recording_proxy.hpp"

using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

const std::string kReplayToken = "a-token-that-nobody-may-see-1234";
const std::string kOldToken = "the-token-that-was-last-week-123";
const std::string kReplayPattern = "what the ranks add";
constexpr std::size_t kPreface = 8, kHello = kPreface + 32;
constexpr std::size_t kFromDialler = kHello + 24 + 32;

std::uint16_t port_of(const std::string& out) {
  const std::size_t colon = out.find(':', out.find("at "));
  return static_cast<std::uint16_t>(std::stoi(out.substr(colon + 1)));
}

/// Three ranks, of which the last one is held back, so that the group is meeting. Rank 1 comes through a proxy.
class MeetingGroup {
 public:
  MeetingGroup() {
    const std::string gate = directory_.path() + "/gate";
    REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
    // The gate is opened for reading and writing, so that opening it waits for nobody.
    gate_ = ::open(gate.c_str(), O_RDWR | O_CLOEXEC);
    launch_ = std::make_unique<CommandProcess>(
        std::vector<std::string>{
            "launch", "-n", "3", "--no-prefix", "--", "sh", "-c",
            "case $RINGLET_RANK in 0) echo \"at $RINGLET_COORDINATOR end\" ;; 1) export RINGLET_COORDINATOR=127.0.0.1:" +
                std::to_string(proxy_.port()) + " ;; 2) read -r word < \"$2\" ;; esac; exec \"$0\" \"$1\"",
            RINGLET_PATTERN_RANK, kReplayPattern, gate},
        std::vector<std::pair<std::string, std::string>>{{"RINGLET_TOKEN", kReplayToken}, {"RINGLET_PEER_MEMORY", "off"}});
    launch_->wait_for_stdout(" end\n");
    port_ = port_of(launch_->out());
    proxy_.pass_on_to(port_);
  }
  ~MeetingGroup() { ::close(gate_); }
  std::uint16_t port() const { return port_; }
  /// Returns what rank 1 has sent so far: at least its handshake and some records.
  std::string said_by_a_rank() { return proxy_.wait_for_dialler(kFromDialler + 40).from_dialler; }
  /// Lets the last rank go on, and waits for the end of the run.
  Outcome finish() {
    REQUIRE(::write(gate_, "go\n", 3) == 3);
    return launch_->finish();
  }

 private:
  TemporaryDirectory directory_;
  int gate_ = -1;
  RecordingProxy proxy_;
  std::unique_ptr<CommandProcess> launch_;
  std::uint16_t port_ = 0;
};

/// Runs a rank with settings of its own that dials the group. Returns what the group told it each time; `text` gets what it printed.
std::vector<std::string> told_to_rogue(std::uint16_t port, const std::string& settings, std::string& text) {
  RecordingProxy proxy;
  proxy.pass_on_to(port);
  const Outcome outcome = run_command({"launch", "-n", "1", "--no-prefix", "--", "sh", "-c",
                                       "unset RINGLET_COORDINATOR_FD RINGLET_TOKEN RINGLET_ENCRYPT; export RINGLET_RANK=2 "
                                       "RINGLET_WORLD_SIZE=3 RINGLET_COORDINATOR=127.0.0.1:" +
                                           std::to_string(proxy.port()) + " " + settings + "; exec \"$0\" x",
                                       RINGLET_PATTERN_RANK},
                                      {{"RINGLET_CONNECT_TIMEOUT_MS", "3000"}});
  CHECK(outcome.exit_code == 1);
  text = outcome.out + outcome.err;
  std::vector<std::string> told;
  for (const auto& conversation : proxy.finish()) told.push_back(conversation.from_acceptor);
  CHECK_FALSE(told.empty());
  return told;
}

}  // namespace

TEST_CASE("recordings and ranks without the right token are refused alike, and the group goes on") {
  MeetingGroup group;
  const std::string recorded = group.said_by_a_rank();
  std::vector<std::string> told;
  for (int i = 0; i < 3; ++i) told.push_back(replay(group.port(), recorded, kHello));
  std::string text;
  for (const std::string& answer : told_to_rogue(group.port(), "RINGLET_ENCRYPT=on", text)) told.push_back(answer);
  CHECK_THAT(text, Contains("give all ranks the same (RINGLET_TOKEN"));
  for (const std::string& answer : told_to_rogue(group.port(), "RINGLET_TOKEN=" + kOldToken, text)) told.push_back(answer);
  CHECK_THAT(text, Contains("give all ranks the same (RINGLET_TOKEN") && !Contains(kOldToken));
  // Each answer is a preface and a fresh key, as for everyone, and says nothing about what was wrong.
  for (const std::string& answer : told) {
    CHECK(answer.size() == kHello);
    CHECK(answer.substr(0, kPreface) == told[0].substr(0, kPreface));
  }
  // A rank that does not encrypt says so in its preface, so it is told a preface and nothing else.
  for (const std::string& answer : told_to_rogue(group.port(), "RINGLET_ENCRYPT=off", text)) CHECK(answer == told[0].substr(0, kPreface));
  CHECK_THAT(text, Contains("does not encrypt its links"));

  const Outcome outcome = group.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(sorted_lines(outcome.out) ==
        std::vector<std::string>{"at 127.0.0.1:" + std::to_string(group.port()) + " end", "right", "right", "right"});
}

TEST_CASE("the recording of a whole job says nothing to the next one with the same token") {
  std::string recorded;
  {
    MeetingGroup before;
    before.said_by_a_rank();
    REQUIRE(before.finish().exit_code == 0);
    recorded = before.said_by_a_rank();
  }
  MeetingGroup group;
  CHECK(replay(group.port(), recorded, kHello).size() == kHello);
  // This joins the next rank's key to the former one's proof, cut together from two recordings.
  const std::string fresh = group.said_by_a_rank();
  CHECK(replay(group.port(), fresh.substr(0, kHello) + recorded.substr(kHello), kHello).size() == kHello);
  const Outcome outcome = group.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
}
