#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/process/merged_trace.hpp"

using namespace ringlet::test;
using Catch::Contains;
using Json = nlohmann::json;

TEST_CASE("a trace of four ranks has each segment's sending before its receipt") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  for (const char* peer_memory : {"on", "off"}) {
    CAPTURE(peer_memory);
    const Outcome outcome = run_command({"launch", "-n", "4", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "24"},
                                        {{"RINGLET_PEER_MEMORY", peer_memory}});
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, Contains("ringlet launch: the trace is in '" + file + "': "));
    // The parts are gone, once they are in the whole.
    CHECK(files_in(directory) == 1);
    const MergedTrace trace(file);
    CHECK(trace.processes() == std::set<int>{0, 1, 2, 3});
    CHECK(trace.ends == 4);
    REQUIRE(trace.dropped == 0);
    for (int rank = 0; rank < 4; ++rank) {
      CAPTURE(rank, outcome.err);
      CHECK(trace.spans(rank, "all_reduce").size() == 8);
      CHECK(trace.spans(rank, "broadcast").size() == 8);
      CHECK(trace.spans(rank, "wait").size() >= 24);
      const int next = (rank + 1) % 4;
      // A thread's events stand together in the file, and another thread than the caller's may end a message.
      const auto sent_messages = trace.segments(rank, "message send", next), taken = trace.segments(next, "message recv", rank);
      REQUIRE(sent_messages.size() == 8);
      REQUIRE(taken.size() == 8);
      for (std::size_t i = 0; i < 8; ++i) {
        CHECK(sent_messages[i].begin <= taken[i].end);
        CHECK(taken[i].begin <= sent_messages[i].end);
        CHECK(sent_messages[i].bytes == taken[i].bytes);
        CHECK(sent_messages[i].number == taken[i].number);
      }
      std::size_t messages = 0;
      for (int peer = 0; peer < 4; ++peer) {
        const std::vector<Span> sent = trace.segments(rank, "send", peer), received = trace.segments(peer, "receive", rank);
        REQUIRE(sent.size() == received.size());
        messages += sent.size();
        std::size_t early = 0;
        for (std::size_t i = 0; i < sent.size(); ++i)
          early += sent[i].begin <= received[i].end && sent[i].bytes == received[i].bytes && sent[i].number == i && received[i].number == i
                       ? 1
                       : 0;
        CHECK(early == sent.size());
      }
      CHECK(messages > 24);
    }
  }
}

TEST_CASE("of a rank that was killed the trace has what it did until then") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  CommandProcess launch({"launch", "-n", "3", "--linger", "10", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--sums"});
  launch.wait_for_stdout("met\n", 3);
  // Its file grows, so it has written something of the collectives.
  const pid_t victim = traced_pid(launch.out(), 1);
  wait_for_condition([&] { return traced_bytes(victim) >= 20'000; });
  // Stopped first, so that the others are within a collective when it dies: then their traces grow no more.
  REQUIRE(::kill(victim, SIGSTOP) == 0);
  const pid_t waits = traced_pid(launch.out(), 0);
  std::uintmax_t bytes = 0;
  wait_for_condition([&, still = 0]() mutable {
    still = traced_bytes(waits) == bytes ? still + 1 : 0;
    bytes = traced_bytes(waits);
    return still == 60;
  });
  REQUIRE(::kill(victim, SIGKILL) == 0);
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 128 + SIGKILL);
  CHECK_THAT(outcome.err, Contains("the trace is in '" + file + "': ") && Contains(" of 3 processes") &&
                              Contains("ringlet launch: the trace of rank 1 ends early: its process was killed, or could not write on\n"));
  const Json json = Json::parse(read_file(file));
  std::map<int, int> spans;
  int ends = 0, failed = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "X") ++spans[event["pid"].get<int>()];
    ends += event["name"] == "ringlet_trace_end" ? 1 : 0;
    failed += event.contains("args") && event["args"].value("failed", false) ? 1 : 0;
  }
  CHECK(spans.size() == 3);
  CHECK(spans[1] > 0);
  CHECK(ends == 2);
  CHECK(failed == 2);
}

TEST_CASE("a full disk costs only the trace, and is told by whose it is") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  std::filesystem::create_symlink("/dev/full", directory.path() + "/trace.1.json");
  const Outcome rank = run_command({"launch", "-n", "2", "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"}, {{"RINGLET_TRACE", file}});
  CAPTURE(rank.out, rank.err);
  CHECK(rank.exit_code == 0);
  CHECK_THAT(rank.err, Contains("rank 1: the trace ends here, and the program goes on without it: '") &&
                           Contains("trace.1.json' cannot be written: No space left on device"));
  CHECK(Json::parse(read_file(directory.path() + "/trace.0.json")).back()["name"] == "ringlet_trace_end");

  const Outcome launcher = run_command({"launch", "-n", "2", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"});
  CAPTURE(launcher.out, launcher.err);
  CHECK(launcher.exit_code == 0);
  CHECK_THAT(launcher.err, Contains("the trace lacks all of rank 1: '") && Contains("No space left on device") &&
                               Contains("the trace is in '" + file + "': "));
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a file that cannot be written is told before anything starts") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/none/trace.json";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"launch", "-n", "2", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP},
        {"bench", "--ranks", "2", "--trace", file}}) {
    const Outcome outcome = run_command(command);
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Contains("--trace: '" + file + "' cannot be written: No such file or directory"));
  }
  const Outcome rank = run_command({"launch", "-n", "2", "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"}, {{"RINGLET_TRACE", file}});
  CHECK(rank.exit_code != 0);
  CHECK_THAT(rank.out + rank.err, Contains("none/trace.0.json' (RINGLET_TRACE) cannot be written: No such file"));

  const Outcome without =
      run_command({"launch", "-n", "2", "--trace", directory.path() + "/t.json", "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"},
                  {{"TMPDIR", directory.path() + "/none"}});
  CAPTURE(without.out, without.err);
  CHECK(without.exit_code == 0);
  CHECK_THAT(without.err, Contains("rank 1 keeps no trace, since no file can be made for it: ") && Contains("TMPDIR") &&
                              Contains("there is no trace: nothing came of any rank"));
}

TEST_CASE("two launchers keep no trace of one name at once, and the second one says so before anything starts") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  CommandProcess first({"launch", "-n", "2", "--linger", "10", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--sums"});
  first.wait_for_stdout("met\n", 2);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"launch", "-n", "2", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"},
        {"bench", "--ranks", "2", "--trace", file}}) {
    const Outcome second = run_command(command);
    CAPTURE(second.out, second.err);
    CHECK(second.exit_code == 2);
    CHECK(second.out.empty());
    CHECK_THAT(second.err, Contains("--trace: '" + file + "' cannot be written: another process is making a trace of that name"));
  }
  const pid_t victim = traced_pid(first.out(), 1);
  wait_for_condition([&] { return traced_bytes(victim) >= 20'000; });
  REQUIRE(::kill(victim, SIGKILL) == 0);
  const Outcome outcome = first.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK_THAT(outcome.err, Contains("the trace is in '" + file + "': ") && Contains(" of 2 processes"));
  CHECK(MergedTrace(file, true).processes() == std::set<int>{0, 1});
  CHECK(files_in(directory) == 1);
  // From then on the name is anybody's again.
  const Outcome third = run_command({"launch", "-n", "2", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"});
  CHECK(third.exit_code == 0);
  CHECK(MergedTrace(file).ends == 2);
}

TEST_CASE("a trace of which nothing has come is told of the last rank, too, whose earlier process has left some") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json", once = directory.path() + "/once";
  // Its second process comes to no init().
  const Outcome outcome =
      run_script({"--elastic", "1:1", "-n", "1", "--restarts", "1", "--trace", file},
                 "[ -e '" + once + "' ] && exit 0; touch '" + once + "'; '" RINGLET_COLLECTIVE_LOOP "' --rounds 8; exit 3");
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("ringlet launch: the trace lacks rank 0: its program did not come to ringlet::init()"));
  CHECK_THAT(outcome.err, Contains("the trace is in '" + file + "': ") && Contains(" of 1 process;"));
}

TEST_CASE("a program that never comes to init() has no trace, and the launcher says so") {
  const TemporaryDirectory directory;
  const Outcome outcome = run_command({"launch", "-n", "2", "--trace", directory.path() + "/t.json", "--", "true"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("there is no trace: nothing came of any rank; its program did not come to ringlet::init()"));
  CHECK(files_in(directory) == 0);
}

TEST_CASE("a process that forms several groups has one part") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome outcome = run_command({"launch", "-n", "2", "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--twice"});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains(" of 2 processes"));
}

#if defined(RINGLET_ELASTIC_EXAMPLE)
TEST_CASE("a rank that was lost, and the one that was started in its place, are both in the trace, with the change of the group") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  CommandProcess launch(
      {"launch", "--elastic", "2:3", "-n", "3", "--no-prefix", "--trace", file, "--", RINGLET_ELASTIC_EXAMPLE, "600", "5"});
  const std::string mark = "rank 0 of 3 begins, process ";
  launch.wait_for_stdout(mark);
  launch.wait_for_stdout("\n", 3);
  const pid_t victim = static_cast<pid_t>(std::stol(launch.out().substr(launch.out().find(mark) + mark.size())));
  wait_for_condition([&] { return traced_bytes(victim) >= 20'000; });
  REQUIRE(::kill(victim, SIGKILL) == 0);
  launch.wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains(" of 4 processes"));
  CHECK(files_in(directory) == 1);
  const MergedTrace trace(file, true);
  CHECK(trace.processes().size() == 4);
  CHECK(trace.ends == 3);
  const auto count = [&](const std::string& name) { return std::count(trace.instants.begin(), trace.instants.end(), name); };
  CHECK(count("world of 3, epoch 0") == 3);
  CHECK(count("world of 2, epoch 1: rank 0 of the one before lost") == 2);
  // The two that were there, and the one that joined.
  CHECK(count("world of 3, epoch 2") + count("world of 3, epoch 2: joined") == 3);
}
#endif

TEST_CASE("bench traces its own ranks, one that is alone, too, and the group that it was launched in") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  const std::vector<std::string> line{"bench", "--sizes", "1KiB,1MiB", "--seconds", "0.02", "--trace", file};
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    std::vector<std::string> command = line;
    command.insert(command.end(), {"--ranks", std::to_string(ranks)});
    const Outcome outcome = run_command(command);
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(files_in(directory) == 1);
    std::filesystem::remove(file);
  }
  std::vector<std::string> launched{"launch", "-n", "2", "--", RINGLET_COMMAND};
  launched.insert(launched.end(), line.begin(), line.end());
  CHECK(run_command(launched).exit_code == 0);
  CHECK(run_command({"trace", "merge", file}).exit_code == 0);
  CHECK(MergedTrace(file).spans(1, "all_reduce").size() > 2);
}
