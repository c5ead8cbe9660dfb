#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/merged_trace.hpp"

using namespace ringlet::test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

/// Whether the process has a handler for the signal.
bool catches(pid_t process, int signal_number) {
  const std::string status = read_file("/proc/" + std::to_string(process) + "/status"), mark = "SigCgt:";
  const std::size_t at = status.find(mark);
  return at != std::string::npos && (std::stoull(status.substr(at + mark.size()), nullptr, 16) >> (signal_number - 1) & 1) != 0;
}

}  // namespace

TEST_CASE("a signal ends the transfer of traces from a host that has become slow, and what lacks is told") {
  const TemporaryDirectory directory;
  const std::string ssh = directory.path() + "/ssh", file = directory.path() + "/trace.json";
  struct Case {
    const char* passed_bytes;  // so much comes from the other host, then nothing more
    int signal_number;
    const char* lacks;
  };
  for (const Case& one : {Case{"300000", SIGINT, "the end of rank 1 on 127.0.0.2, behind its first 256 KiB"},
                          Case{"100000", SIGTERM, "all of rank 1 on 127.0.0.2"}}) {
    CAPTURE(one.passed_bytes);
    // It stands in ssh's place. The shell gives a command in the background no standard input but one that is named.
    std::ofstream(ssh) << "for line; do :; done\nmkfifo \"$0.$$\"\nexec 3<&0\nsh -c \"$line\" <&3 3<&- >\"$0.$$\" &\n"
                       << "exec <\"$0.$$\" 3<&-\ndd bs=1 count=" << one.passed_bytes << " 2>/dev/null\nexec sleep 1000\n";
    CommandProcess launch({"launch", "--hosts", "127.0.0.1,me@127.0.0.2", "--ssh", "sh " + ssh, "--remote-ringlet", RINGLET_COMMAND,
                           "--trace", file, "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "160"});
    launch.wait_for_stderr("the ranks have ended, and their traces have not all come from 127.0.0.2 yet; Ctrl-C leaves out the rest");
    launch.send(one.signal_number);
    const Outcome outcome = launch.finish();
    CAPTURE(outcome.out, outcome.err);
    // All ranks had succeeded.
    CHECK(outcome.exit_code == 0);
    CHECK_THAT(outcome.err, Contains("ringlet launch: the trace lacks " + std::string(one.lacks) +
                                     ", which had not come when a signal ended the wait for it\n"));
    CHECK_THAT(outcome.err, !Contains("silent"));
    CHECK_THAT(outcome.err, Contains("the trace is in '" + file + "': "));
    const MergedTrace trace(file, true);
    CHECK(trace.spans(0, "all_reduce").size() == 54);
    CHECK(trace.spans(1, "all_reduce").empty() == (one.signal_number == SIGTERM));
    std::filesystem::remove(file);
  }
}

TEST_CASE("a job leaves the trace alone that another one is writing, and goes on without") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const std::vector<std::pair<std::string, std::string>> environment{{"RINGLET_TRACE", file}, {"RINGLET_TRACE_MIB", "1"}};
  CommandProcess first({"launch", "-n", "2", "--", RINGLET_COLLECTIVE_LOOP, "--sums"}, environment);
  first.wait_for_stdout("met\n", 2);
  const pid_t writer = traced_pid(first.out(), 0);
  const std::vector<std::string> short_job{"launch", "-n", "3", "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"};
  const Outcome second = run_command(short_job, environment);
  CAPTURE(second.out, second.err);
  CHECK(second.exit_code == 0);
  CHECK_THAT(second.err, Contains("rank 0: the trace is not written: '" + directory.path() +
                                  "/trace.0.json' (RINGLET_TRACE) is being written by process " + std::to_string(writer) +
                                  " (ringlet_collective_loop on ") &&
                             Contains("rank 1: the trace is not written: ") && !Contains("rank 2: the trace is not written"));
  CHECK(Json::parse(read_file(directory.path() + "/trace.2.json")).back()["name"] == "ringlet_trace_end");
  REQUIRE(::kill(writer, SIGKILL) == 0);
  first.finish();
  // The first job's parts are whole, as far as it came.
  std::string text = read_file(directory.path() + "/trace.0.json");
  text = text.substr(0, text.rfind(",\n"));
  const Json part = Json::parse(text + "]");
  CHECK(part[0]["args"]["process"] == writer);
  CHECK(part.size() > 100);
  // A killed process keeps nobody out.
  const Outcome third = run_command(short_job, environment);
  CHECK_THAT(third.err, !Contains("is not written"));
  CHECK(Json::parse(read_file(directory.path() + "/trace.0.json")).back()["name"] == "ringlet_trace_end");
}

TEST_CASE("parts of an earlier job that had more ranks are left out, unless they are named") {
  const TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return directory.path() + "/" + name; };
  for (const char* ranks : {"3", "2"})
    REQUIRE(run_command({"launch", "-n", ranks, "--", RINGLET_COLLECTIVE_LOOP, "--twice"}, {{"RINGLET_TRACE", at("t.json")}}).exit_code ==
            0);
  const Outcome merged = run_command({"trace", "merge", at("t.json"), "--json"});
  CAPTURE(merged.out, merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(Json::parse(merged.out)["parts"] == 2);
  CHECK(Json::parse(merged.out)["left_out"] == Json({at("t.2.json")}));
  CHECK(merged.err == "ringlet trace: left out '" + at("t.2.json") + "', of another job than '" + at("t.0.json") +
                          "', which is newer; parts that the command line names are all merged\n");
  CHECK(MergedTrace(at("t.json")).processes() == std::set<int>{0, 1});

  const Outcome named = run_command({"trace", "merge", at("all.json"), at("t.0.json"), at("t.1.json"), at("t.2.json"), "--json"});
  CAPTURE(named.out, named.err);
  CHECK(named.exit_code == 0);
  CHECK(Json::parse(named.out)["parts"] == 3);
  CHECK(Json::parse(named.out)["left_out"].empty());
  CHECK(named.err == "ringlet trace: '" + at("t.2.json") + "' is of another job than '" + at("t.0.json") +
                         "', and merged all the same, since it is named\n");
}

TEST_CASE("a signal ends the merging, and leaves all files as they were") {
  ::signal(SIGPIPE, SIG_IGN);
  const int number = GENERATE(SIGINT, SIGHUP);
  const TemporaryDirectory directory;
  const std::string part = directory.path() + "/t.0.json", file = directory.path() + "/t.json";
  // A part that is a pipe shows how far the command has come.
  REQUIRE(::mkfifo(part.c_str(), 0600) == 0);
  CommandProcess merge({"trace", "merge", file});
  int writer = -1;
  wait_for_condition([&] { return (writer = ::open(part.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) >= 0; });
  /// Until the command reads no more, or so many lines have been written.
  const auto write_lines = [&](const std::string& line, int count) {
    for (int i = 0; i < count;) {
      const ssize_t written = ::write(writer, line.data(), line.size());
      if (written < 0 && errno != EAGAIN) return;
      if (written < 0)
        ::usleep(1000);
      else
        ++i;
    }
  };
  // First it looks which job wrote the part.
  write_lines(
      "[\n{\"name\":\"world\",\"ph\":\"i\",\"ts\":1.0,\"pid\":0,\"args\":{\"job\":\"1\",\"lineage\":\"0\",\"epoch\":0,\"rank\":0}},\n", 1);
  wait_for_condition([&] { return catches(merge.pid(), number); });
  merge.send(number);
  // It opens the part anew, and nobody reads before.
  wait_for_condition([&] { return ::write(writer, "[\n", 2) == 2; });
  write_lines(R"({"name":"work","ph":"X","ts":1.000,"dur":2.000,"pid":0,"args":{}},)"
              "\n",
              100'000);
  ::close(writer);
  const Outcome outcome = merge.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 128 + number);
  CHECK(outcome.err == "ringlet trace: a signal ended the merging; '" + file + "' and the parts are as they were\n");
  CHECK(files_in(directory) == 1);
}

TEST_CASE("the same collectives overlap on clocks that differ by hours, within the stated error") {
  // Older systems have no time namespaces, and most let root alone make them.
  const std::string apart = "unshare --time --fork --monotonic 5000 ";
  if (std::system((apart + "true >/dev/null 2>&1").c_str()) != 0) {
    std::printf("left out: this system lets nobody make a time namespace (unshare --time)\n");
    return;
  }
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  const Outcome outcome =
      run_script({"-n", "2", "--trace", file},
                 "[ $RINGLET_RANK = 0 ] || apart='" + apart + "'; exec $apart '" RINGLET_COMMAND "' bench --sizes 1MiB --seconds 0.6");
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  std::map<int, Json> headers;
  double largest_offset_ns = 0;
  const Json json = Json::parse(read_file(file));
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "ringlet_trace") headers[event["pid"]] = event["args"];
    if (event["name"] == "clock") largest_offset_ns = std::max(largest_offset_ns, std::abs(event["args"]["offset_ns"].get<double>()));
  }
  CHECK(headers[0]["clock"] != headers[1]["clock"]);
  CHECK(headers[1]["aligned"] == true);
  CHECK(largest_offset_ns > 4e12);
  const double error_us = headers[1]["clock_error_ns"].get<double>() / 1000;
  CHECK(error_us > 0);
  const MergedTrace trace(file);
  std::map<std::uint64_t, Span> zero;
  for (const Span& span : trace.spans(0, "all_reduce")) zero.emplace(span.number, span);
  std::size_t compared = 0, overlapping = 0;
  // On a busy machine events may come faster than they are written, which the ranks say.
  const bool is_whole = outcome.err.find("the trace lacks") == std::string::npos;
  for (const Span& span : trace.spans(1, "all_reduce")) {
    const auto same = zero.find(span.number);
    if (same == zero.end()) {
      REQUIRE_FALSE(is_whole);
      continue;
    }
    ++compared;
    // Neither rank can end before the other one has begun.
    overlapping += span.begin <= same->second.end + error_us && same->second.begin <= span.end + error_us ? 1 : 0;
  }
  CHECK(compared > 20);
  CHECK(overlapping == compared);
  // The bound is of use: the clocks are known far better than by the length of the run.
  CHECK(error_us < 1e5);
}

#if defined(RINGLET_ELASTIC_EXAMPLE)
TEST_CASE("a process that joined later is of the same job") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/trace.json";
  CommandProcess launch({"launch", "--elastic", "2:3", "-n", "3", "--no-prefix", "--", RINGLET_ELASTIC_EXAMPLE, "600", "5"},
                        {{"RINGLET_TRACE", file}});
  const std::string mark = "rank 0 of 3 begins, process ";
  launch.wait_for_stdout(mark);
  launch.wait_for_stdout("\n", 3);
  const pid_t victim = static_cast<pid_t>(std::stol(launch.out().substr(launch.out().find(mark) + mark.size())));
  // It has written that it is in a group.
  wait_for_condition([&] { return read_file(directory.path() + "/trace.0.json").find("lineage") != std::string::npos; });
  REQUIRE(::kill(victim, SIGKILL) == 0);
  launch.wait_for_stderr("epoch 2: 3 ranks, 1 of them new");
  const Outcome outcome = launch.finish();
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.exit_code == 0);
  const Outcome merged = run_command({"trace", "merge", file, "--json"});
  CAPTURE(merged.out, merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(Json::parse(merged.out)["parts"] == 4);
  CHECK(Json::parse(merged.out)["left_out"].empty());
  std::set<std::string> jobs;
  const Json json = Json::parse(read_file(file));
  for (const Json& event : json["traceEvents"])
    if (event.contains("args") && event["args"].contains("job")) jobs.insert(event["args"]["job"].get<std::string>());
  CHECK(jobs.size() == 1);
}
#endif

TEST_CASE("parts that were written without the launcher are merged by the command, and summed up") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  const Outcome ran = run_command({"launch", "-n", "2", "--", RINGLET_COLLECTIVE_LOOP, "--rounds", "8"}, {{"RINGLET_TRACE", file}});
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.err, Contains("`ringlet trace merge '" + file + "'`"));
  const Outcome merged = run_command({"trace", "merge", file, "--json"});
  CAPTURE(merged.out, merged.err);
  CHECK(merged.exit_code == 0);
  const Json json = Json::parse(merged.out);
  CHECK(json["parts"] == 2);
  CHECK(json["unaligned"].empty());
  CHECK(MergedTrace(file).processes() == std::set<int>{0, 1});

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
