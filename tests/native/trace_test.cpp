#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ringlet/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "native/trace/recorder.hpp"
#include "native/trace/trace_events.hpp"
#include "native/trace/trace_file.hpp"
#include "native/trace/trace_settings.hpp"
#include "tests/temporary_directory.hpp"
#include "transport/unique_fd.hpp"

using namespace ringlet;
using namespace ringlet::native;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TraceRecord numbered(std::uint32_t track, std::uint64_t number) {
  TraceRecord record;
  record.track = track;
  record.name = "step";
  record.category = kProgramCategory;
  record.begin = {static_cast<std::int64_t>(1000 + number)};
  record.end = {static_cast<std::int64_t>(2000 + number)};
  record.number = number;
  return record;
}

}  // namespace

TEST_CASE("a rank's part is named after the trace, the rank, and the epoch that it joined in") {
  CHECK(part_of_rank(3, 0) == "3");
  CHECK(part_of_rank(12, 7) == "12.epoch7");
  CHECK(name_of_trace_part("trace.json", "3") == "trace.3.json");
  CHECK(name_of_trace_part("a.b/trace", "0") == "a.b/trace.0");
  CHECK(name_of_trace_part("/data/x.y.json", "12.epoch7") == "/data/x.y.12.epoch7.json");
  CHECK(name_of_trace_part("dir/.trace", "1") == "dir/.trace.1");
}

TEST_CASE("what overlaps is told apart, whatever it is alike in") {
  const test::TemporaryDirectory directory;
  Recorder recorder({.file = directory.path() + "/t.json"});
  recorder.enter({.size = 2});
  const std::uint32_t sent = recorder.add_track("messages sent on stream 0"),
                      received = recorder.add_track("messages received on stream 0");
  constexpr int kRecords = 4;
  for (int i = 0; i < kRecords; ++i) {
    TraceRecord record = numbered(i % 2 == 0 ? sent : received, 0);
    record.overlaps = true;
    recorder.record(record);
  }
  recorder.finish();
  std::map<std::string, int> names;
  std::map<std::string, std::string> phases;
  for (const Json& event : Json::parse(text_of(directory.path() + "/t.0.json"))) {
    if (!event.contains("id2")) continue;
    ++names[event["name"]];
    phases[event["id2"]["local"]] += event["ph"];
  }
  CHECK(names == std::map<std::string, int>{{"messages sent on stream 0", kRecords}, {"messages received on stream 0", kRecords}});
  CHECK(phases.size() == kRecords);
  for (const auto& [id, both] : phases) CHECK(both == "be");
}

TEST_CASE("a trace that is cut short lacks only its end, and one beyond its limit says how much it lacks") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/t.json";
  {
    TraceFile file(path, "RINGLET_TRACE", 100);
    for (int i = 0; i < 10; ++i) file.add("{\"event\":" + std::to_string(i) + "}");
    REQUIRE(file.flush());
    CHECK(Json::parse(text_of(path) + "{}]").size() == 8);  // 11 bytes each, and two between them
    CHECK(file.dropped() == 3);
    REQUIRE(file.finish("{\"end\":true}"));
  }
  const Json events = Json::parse(text_of(path));
  REQUIRE(events.size() == 8);
  CHECK(events[6]["event"] == 6);
  CHECK(events[7]["end"] == true);
}

TEST_CASE("a trace that cannot be made, or written, says why") {
  const test::TemporaryDirectory directory;
  CHECK_THROWS_AS(TraceFile(directory.path() + "/none/t.json", "RINGLET_TRACE", 100), InvalidArgument);
  CHECK_THROWS_WITH(TraceFile(directory.path() + "/none/t.json", "RINGLET_TRACE", 100),
                    Contains("none/t.json' (RINGLET_TRACE) cannot be written: No such file"));
  if (!std::filesystem::exists("/dev/full")) return;
  TraceFile file("/dev/full", "RINGLET_TRACE", 1000);
  file.add("{}");
  CHECK_FALSE(file.flush());
  CHECK(file.error() == "No space left on device");
  file.add("{}");
  CHECK_FALSE(file.flush());
  CHECK_FALSE(file.finish("{}"));
}

TEST_CASE("what threads record at once is all there, or counted as dropped, in the order of each") {
  const test::TemporaryDirectory directory;
  constexpr std::uint64_t kThreads = 4, kEvents = 30'000;
  Recorder recorder({.file = directory.path() + "/t.json", .rank = 2});
  recorder.enter({.rank = 2, .size = 3});
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&recorder, thread] {
      const std::uint32_t track = recorder.add_track("track " + std::to_string(thread));
      for (std::uint64_t number = 0; number < kEvents; ++number) recorder.record(numbered(track, number));
      recorder.record_span(detail::SpanName::of("span"), SpanKind::work, recorder.now());
    });
  for (std::thread& thread : threads) thread.join();
  recorder.finish();
  recorder.record(numbered(1, 1));  // is lost, without harm

  const Json events = Json::parse(text_of(directory.path() + "/t.2.json"));
  std::map<int, std::string> tracks;
  std::map<int, std::vector<std::uint64_t>> numbers;
  std::uint64_t kept = 0;
  for (const Json& event : events) {
    CHECK(event["pid"] == 2);
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    ++kept;
    if (event["name"] == "step") numbers[event["tid"]].push_back(event["args"]["number"]);
  }
  CHECK(events.back()["name"] == "ringlet_trace_end");
  CHECK(kept + events.back()["args"]["dropped_by_threads"].get<std::uint64_t>() == kThreads * (kEvents + 1));
  CHECK(numbers.size() == kThreads);
  for (const auto& [track, all] : numbers) {
    CHECK(tracks[track].starts_with("track "));
    // The newest are dropped, so the first ones are there: as many as a buffer takes that another thread may have left half full.
    REQUIRE(all.size() >= Recorder::kBufferEvents / 2);
    CHECK(std::is_sorted(all.begin(), all.end()));
    for (std::uint64_t i = 0; i < Recorder::kBufferEvents / 2; ++i) REQUIRE(all[i] == i);
  }
}

TEST_CASE("tracks keep their number, and beyond a limit share the last one") {
  const test::TemporaryDirectory directory;
  Recorder recorder({.file = directory.path() + "/t.json"});
  const std::uint32_t one = recorder.add_track("one");
  CHECK(recorder.add_track("two") != one);
  CHECK(recorder.add_track("one") == one);
  for (std::size_t i = 0; i < 2 * Recorder::kMostTracks; ++i) CHECK(recorder.add_track("t" + std::to_string(i)) <= Recorder::kMostTracks);
}

TEST_CASE("a thread that has ended leaves its buffer to the next") {
  const test::TemporaryDirectory directory;
  Recorder recorder({.file = directory.path() + "/t.json"});
  recorder.enter({.size = 2});
  for (std::size_t i = 0; i < 2 * Recorder::kMostThreads; ++i) std::thread([&] { recorder.record(numbered(1, i)); }).join();
  recorder.finish();
  const Json events = Json::parse(text_of(directory.path() + "/t.0.json"));
  CHECK(std::count_if(events.begin(), events.end(), [](const Json& event) { return event["name"] == "step"; }) ==
        2 * Recorder::kMostThreads);
  CHECK(events.back()["args"]["dropped_by_threads"] == 0);
}

TEST_CASE("spans say whether they worked or waited") {
  const test::TemporaryDirectory directory;
  Recorder recorder({.file = directory.path() + "/t.json"});
  recorder.record_span(detail::SpanName::of("forward"), SpanKind::work, recorder.now());
  recorder.record_span(detail::SpanName::of("for data"), SpanKind::wait, recorder.now());
  recorder.enter({.size = 2});
  recorder.finish();
  std::map<std::string, std::string> categories;
  for (const Json& event : Json::parse(text_of(directory.path() + "/t.0.json")))
    if (event["ph"] == "X") categories[event["name"]] = event["cat"];
  CHECK(categories == std::map<std::string, std::string>{{"forward", "program"}, {"for data", "wait"}});
}

TEST_CASE("a process that was alone all the time has the trace itself, and one of several a part") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json", part = directory.path() + "/t.0.json";
  for (const int size : {1, 2}) {
    Recorder recorder({.file = file, .variable = "RINGLET_TRACE"});
    recorder.enter({.size = 1});
    recorder.enter({.epoch = 1, .size = size});
    CHECK(std::filesystem::exists(part));
    recorder.finish();
    CHECK(std::filesystem::exists(part) == (size == 2));
    CHECK(Json::parse(text_of(size == 1 ? file : part)).back()["name"] == "ringlet_trace_end");
  }
}

TEST_CASE("a trace takes the place of a file alone, and goes behind links") {
  const test::TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe", link = directory.path() + "/link", target = directory.path() + "/target";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(Recorder({.file = pipe}), Contains("pipe' cannot be written: it is a device, a pipe"));
  CHECK_THROWS_WITH(Recorder({.file = directory.path(), .variable = "RINGLET_TRACE"}),
                    Contains("' (RINGLET_TRACE) cannot be written: it is a directory"));
  std::ofstream(target) << "old";
  std::filesystem::create_symlink(target, link);
  Recorder recorder({.file = link});
  recorder.enter({.size = 1});
  recorder.finish();
  CHECK(std::filesystem::is_symlink(link));
  CHECK(Json::parse(text_of(target)).back()["name"] == "ringlet_trace_end");
  CHECK(std::filesystem::is_fifo(pipe));
}

TEST_CASE("a process that met nobody leaves the trace of before as it is") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  std::ofstream(file) << "the trace of before";
  Recorder({.file = file, .variable = "RINGLET_TRACE"}).finish();
  CHECK(text_of(file) == "the trace of before");
  CHECK(std::filesystem::exists(directory.path() + "/t.0.json"));
}

TEST_CASE("a file that a launcher has opened is taken once, and never another one in its place") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/given";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  REQUIRE(descriptor >= 0);
  const auto described = describe_descriptor(descriptor);
  REQUIRE(described);
  const auto settings = read_trace_settings(
      {}, [&](std::string_view name) -> std::optional<std::string> { return name == "RINGLET_TRACE_FD" ? described : std::nullopt; });
  REQUIRE(settings.given_file);
  UniqueFd own = take_given_file(*settings.given_file);
  REQUIRE(own);
  // Neither programs that this one starts nor forked processes find it again.
  CHECK((::fcntl(own.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK_FALSE(take_given_file(*settings.given_file));
  CHECK_FALSE(describe_descriptor(descriptor));
  {
    Recorder recorder(settings, own.release());
    recorder.record_span(detail::SpanName::of("span"), SpanKind::work, recorder.now());
    recorder.finish();
  }
  CHECK(Json::parse(text_of(path)).back()["name"] == "ringlet_trace_end");
  const std::string elsewhere = directory.path() + "/other";
  REQUIRE(::open(elsewhere.c_str(), O_WRONLY | O_CREAT, 0600) == descriptor);
  CHECK_FALSE(take_given_file(*settings.given_file));
  ::close(descriptor);
}

TEST_CASE("a part that is being written is left to its writer, and named") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json", part = directory.path() + "/t.0.json";
  std::ofstream(part) << "what an earlier run left, and that is longer than what comes now" << std::string(1000, '.');
  {
    Recorder first({.file = file, .variable = "RINGLET_TRACE"});
    first.record_span(detail::SpanName::of("span"), SpanKind::work, first.now());
    const auto open_again = [&] { Recorder({.file = file}); };
    CHECK_THROWS_AS(open_again(), TraceFileInUse);
    CHECK_THROWS_WITH(open_again(), Contains("t.0.json' is being written by process " + std::to_string(::getpid()) + " (native_trace on "));
    // Another rank's part is free.
    Recorder other({.file = file, .rank = 1});
    first.enter({.size = 2});
    first.finish();
    CHECK(Json::parse(text_of(part)).back()["name"] == "ringlet_trace_end");
    // From its end on the file is anybody's again.
    Recorder next({.file = file});
  }
  CHECK(text_of(part).find("span") == std::string::npos);
}

TEST_CASE("a file that its writer has renamed meanwhile is not taken for the one of that name") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json", part = directory.path() + "/t.0.json";
  Recorder alone({.file = file});
  alone.enter({.size = 1});
  alone.finish();
  CHECK_FALSE(std::filesystem::exists(part));
  const std::string whole = text_of(file);
  CHECK(Json::parse(whole).back()["name"] == "ringlet_trace_end");
  const int next = open_alone(part);
  REQUIRE(next >= 0);
  REQUIRE(::write(next, "x", 1) == 1);
  CHECK(text_of(file) == whole);
  ::close(next);
}

TEST_CASE("who writes a trace is read from its start, whatever stands there") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/t.json";
  for (const char* text : {"", "[\n", "[\n17,\n", "[\n{},\n", "[\n{\"args\":3},\n", "[\n{\"args\":{\"process\":\"x\"}},\n", "[\n{\"ar"}) {
    std::ofstream(path) << text;
    CHECK(writer_of(path) == "another process");
  }
  CHECK(writer_of(directory.path() + "/none") == "another process");
  std::ofstream(path) << "[\n{\"args\":{\"process\":7,\"program\":5}},\n";
  CHECK(writer_of(path) == "process 7 (? on ?)");
  std::ofstream(path) << "[\n{\"args\":{\"process\":7,\"program\":\"a\\u001b[2Jb\",\"host\":\"alpha\"}},\n" << std::string(100'000, '7');
  CHECK(writer_of(path) == "process 7 (a?[2Jb on alpha)");
  std::ofstream(path) << "[\n{\"args\":{\"process\":7,\"program\":\"" << std::string(100'000, 'a') << "\"}},\n";
  CHECK(writer_of(path) == "another process");
}

TEST_CASE("a forked process does not hold the trace of the one that is gone") {
  const test::TemporaryDirectory directory;
  const std::string part = directory.path() + "/t.0.json";
  std::array<int, 2> alive{}, forked{};
  REQUIRE((::pipe(alive.data()) == 0 && ::pipe(forked.data()) == 0));
  // It traces, forks, and is gone without an end; its child lives on until the pipe is closed here.
  const pid_t writer = ::fork();
  REQUIRE(writer >= 0);
  if (writer == 0) {
    ::close(alive[1]);
    const bool opened = open_trace({.file = directory.path() + "/t.json"}) != nullptr;
    if (::fork() == 0) {
      char byte = 0;
      (void)!::write(forked[1], &byte, 1);
      (void)!::read(alive[0], &byte, 1);
    }
    ::_exit(opened ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  CHECK(status == 0);
  CHECK(std::filesystem::file_size(part) > 0);
  // The child has let go of it, too.
  char byte = 0;
  REQUIRE(::read(forked[0], &byte, 1) == 1);
  const int next = open_alone(part);
  CHECK(next >= 0);
  CHECK(text_of(part).empty());
  ::close(next);
  for (const int end : {alive[0], alive[1], forked[0], forked[1]}) ::close(end);
}
