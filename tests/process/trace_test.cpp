#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/launch/command_process.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet::test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

struct Span {
  double begin, end;  // microseconds
  std::uint64_t bytes;
  std::uint64_t number;  // of a segment, alike where it is sent and where it is received
};

/// A merged trace.
class Trace {
 public:
  /// `cut`: a process was killed, and may have begun what did not end.
  explicit Trace(const std::string& path, bool cut = false) {
    const Json json = Json::parse(read_file(path));
    for (const Json& event : json["traceEvents"]) take(event);
    CHECK((cut || open_.empty()));
  }

  std::vector<Span> spans(int process, const std::string& name, int peer = -1) const {
    const auto found = spans_.find({process, name, peer});
    return found == spans_.end() ? std::vector<Span>{} : found->second;
  }
  /// In the order of their numbers.
  std::vector<Span> segments(int process, const std::string& name, int peer) const {
    auto all = spans(process, name, peer);
    std::sort(all.begin(), all.end(), [](const Span& one, const Span& other) { return one.number < other.number; });
    return all;
  }
  std::set<int> processes() const {
    std::set<int> all;
    for (const auto& [key, spans] : spans_) all.insert(std::get<0>(key));
    return all;
  }

  int ends = 0;  // parts that were closed
  std::uint64_t dropped = 0;
  std::vector<std::string> instants{};

 private:
  void take(const Json& event) {
    const std::string name = event["name"], phase = event["ph"];
    const int process = event["pid"];
    if (name == "ringlet_trace_end") {
      ++ends;
      dropped += event["args"]["dropped_by_threads"].get<std::uint64_t>() + event["args"]["dropped_by_file"].get<std::uint64_t>();
    }
    if (phase == "i") instants.push_back(name);
    if (phase != "X" && phase != "b" && phase != "e") return;
    const Json& arguments = event["args"];
    const double at = event["ts"];
    CHECK(at > 0);
    auto& spans = spans_[{process, name, arguments.value("peer", -1)}];
    if (phase == "e") {
      const auto began = open_.find({process, event["cat"].get<std::string>() + event["id2"]["local"].get<std::string>()});
      REQUIRE(began != open_.end());
      CHECK(began->second <= at);
      spans.push_back({began->second, at, arguments.value("bytes", std::uint64_t{0}), arguments.value("number", std::uint64_t{0})});
      open_.erase(began);
    } else if (phase == "b") {
      open_[{process, event["cat"].get<std::string>() + event["id2"]["local"].get<std::string>()}] = at;
    } else {
      CHECK(event["dur"].get<double>() >= 0);
      spans.push_back(
          {at, at + event["dur"].get<double>(), arguments.value("bytes", std::uint64_t{0}), arguments.value("number", std::uint64_t{0})});
    }
  }

  std::map<std::tuple<int, std::string, int>, std::vector<Span>> spans_;
  std::map<std::pair<int, std::string>, double> open_;
};

/// The process id that rank `rank` has printed.
pid_t traced_pid(const std::string& output, int rank) {
  const std::string mark = "[" + std::to_string(rank) + "] pid ";
  const std::size_t at = output.find(mark);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(output.substr(at + mark.size())));
}

/// The bytes of a process' trace so far; its file has no name.
std::uintmax_t traced_bytes(pid_t process) {
  std::uintmax_t bytes = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone))
    if (std::filesystem::read_symlink(entry, gone).string().find("/ringlet-trace-") != std::string::npos)
      if (const auto size = std::filesystem::file_size(entry, gone); !gone) bytes = std::max(bytes, size);
  return bytes;
}

std::size_t files_in(const TemporaryDirectory& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory.path()), {}));
}

}  // namespace

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
    const Trace trace(file);
    CHECK(trace.processes() == std::set<int>{0, 1, 2, 3});
    CHECK(trace.ends == 4);
    REQUIRE(trace.dropped == 0);
    for (int rank = 0; rank < 4; ++rank) {
      CAPTURE(rank, outcome.err);
      CHECK(trace.spans(rank, "all_reduce").size() == 8);
      CHECK(trace.spans(rank, "broadcast").size() == 8);
      CHECK(trace.spans(rank, "wait").size() >= 24);
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
  for (int i = 0; i < 2000 && traced_bytes(victim) < 20'000; ++i) ::usleep(5000);
  REQUIRE(traced_bytes(victim) >= 20'000);
  // Stopped first, so that the others are within a collective when it dies: then their traces grow no more.
  REQUIRE(::kill(victim, SIGSTOP) == 0);
  const pid_t waits = traced_pid(launch.out(), 0);
  std::uintmax_t bytes = 0;
  for (int still = 0, i = 0; still < 60 && i < 2000; ++i, ::usleep(5000)) {
    still = traced_bytes(waits) == bytes ? still + 1 : 0;
    bytes = traced_bytes(waits);
  }
  REQUIRE(::kill(victim, SIGKILL) == 0);
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 128 + SIGKILL);
  CHECK_THAT(outcome.err, Contains("the trace is in '" + file + "': ") && Contains(" of 3 processes"));
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
  CHECK_THAT(launcher.err, Contains("the trace '" + file + "' was not put together: '") && Contains("No space left on device"));
  CHECK_FALSE(std::filesystem::exists(file));
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
    CHECK_THAT(outcome.err, Contains("--trace " + file + ": it cannot be written: No such file or directory"));
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
  for (int i = 0; i < 2000 && traced_bytes(victim) < 20'000; ++i) ::usleep(5000);
  REQUIRE(::kill(victim, SIGKILL) == 0);
  launch.wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains(" of 4 processes"));
  CHECK(files_in(directory) == 1);
  const Trace trace(file, true);
  CHECK(trace.processes().size() == 4);
  CHECK(trace.ends == 3);
  const auto count = [&](const std::string& name) { return std::count(trace.instants.begin(), trace.instants.end(), name); };
  CHECK(count("world of 3, epoch 0") == 3);
  CHECK(count("world of 2, epoch 1: rank 0 of the one before lost") == 2);
  // The two that were there, and the one that joined.
  CHECK(count("world of 3, epoch 2") + count("world of 3, epoch 2: joined") == 3);
}
#endif

TEST_CASE("parts that were written without the launcher are merged by the command, and summed up") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  const Outcome ran = run_command({"launch", "-n", "2", "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"}, {{"RINGLET_TRACE", file}});
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.err, Contains("`ringlet trace merge " + file + "`"));
  const Outcome merged = run_command({"trace", "merge", file, "--json"});
  CAPTURE(merged.out, merged.err);
  CHECK(merged.exit_code == 0);
  const Json json = Json::parse(merged.out);
  CHECK(json["parts"] == 2);
  CHECK(json["unaligned"].empty());
  CHECK(Trace(file).processes() == std::set<int>{0, 1});

  const Outcome summed = run_command({"trace", "summary", file, "--json"});
  CAPTURE(summed.out, summed.err);
  CHECK(summed.exit_code == 0);
  const Json sums = Json::parse(summed.out);
  REQUIRE(sums["ranks"].size() == 2);
  for (const Json& rank : sums["ranks"]) {
    CHECK(rank["collectives"]["seconds"].get<double>() > 0);
    CHECK(rank["waited_seconds"].get<double>() > 0);
    CHECK(rank["computed_seconds"].is_null());
    CHECK(rank["collectives"]["seconds"].get<double>() <= rank["seconds"].get<double>());
  }
  CHECK_THAT(run_command({"trace", "summary", file}).out, Contains("rank  seconds  computed  under way  waited  hidden  buckets  hidden"));

  // FILE was forgotten, and the first part is not lost.
  const std::string part = directory.path() + "/trace.0.json", before = "[\n";
  std::ofstream(part) << before;
  const Outcome forgotten = run_command({"trace", "merge", part, file});
  CHECK(forgotten.exit_code == 2);
  CHECK_THAT(forgotten.err, Contains("'" + part + "' is there, and was not merged from parts"));
  CHECK(read_file(part) == before);
  std::filesystem::remove(part);

  const Outcome none = run_command({"trace", "merge", directory.path() + "/other.json"});
  CHECK(none.exit_code == 1);
  CHECK_THAT(none.err, Contains("there is no part of '") && Contains("RINGLET_TRACE"));
  const Outcome nothing_within = run_command({"trace", "summary", file, "--within", "step"});
  CHECK(nothing_within.exit_code == 1);
  CHECK_THAT(nothing_within.err, Contains("has no span of the program's own that is called 'step'"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"trace", "split", file}, {"trace", "summary", file, file}, {"trace", "merge", file, "--within", "step"}})
    CHECK(run_command(wrong).exit_code == 2);
}

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
  CHECK(Trace(file).spans(1, "all_reduce").size() > 2);
}
