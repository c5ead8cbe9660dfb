#include "tools/trace/merge.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "native/output_file.hpp"
#include "sim/sim_random.hpp"
#include "tests/temporary_directory.hpp"
#include "tools/trace/event_line.hpp"
#include "tools/trace/part_jobs.hpp"
#include "tools/trace/trace_part.hpp"
#include "tools/trace/trace_reader.hpp"

using namespace ringlet::trace;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string header(int process, const std::string& clock) {
  return R"({"name":"ringlet_trace","ph":"M","pid":)" + std::to_string(process) + R"(,"tid":0,"args":{"version":1,"clock":")" + clock +
         "\"}},\n";
}
std::string seat(int process, int rank) {
  return R"({"name":"world","ph":"i","s":"p","ts":1.000,"pid":)" + std::to_string(process) +
         R"(,"tid":0,"args":{"epoch":0,"lineage":"ab","rank":)" + std::to_string(rank) + "}},\n";
}
std::string span(int process, const std::string& name, const std::string& at) {
  return R"({"name":")" + name + R"(","ph":"X","ts":)" + at + R"(,"dur":2.500,"pid":)" + std::to_string(process) +
         ",\"tid\":1,\"args\":{}},\n";
}

Json named(const Json& merged, const std::string& name, int process) {
  for (const Json& event : merged["traceEvents"])
    if (event["name"] == name && event["pid"] == process) return event;
  return nullptr;
}

}  // namespace

TEST_CASE("parts are merged on one clock, with a process number for each") {
  const ringlet::test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return directory.path() + "/" + name; };
  write(at("t.0.json"), "[\n" + header(0, "a") + seat(0, 0) + span(0, "work", "5000000000000.001") +
                            R"({"name":"ringlet_trace_end","ph":"M","pid":0,"tid":0,"args":{"dropped_by_threads":3,"dropped_by_file":4}})" +
                            "\n]\n");
  // Rank 1's clock is 1 ms behind. It was killed while it wrote.
  write(at("t.1.json"),
        "[\n" + header(1, "b") + seat(1, 1) +
            R"({"name":"clock","ph":"i","s":"p","ts":10.000,"pid":1,"tid":0,"args":{"epoch":0,"offset_ns":1000000,"error_ns":40}},)" +
            "\n" + span(1, "work", "20.000") + R"({"name":"cut","ph":"X","ts":30.0)");
  // Another process had rank 1's place, and says nothing of its clock.
  write(at("t.1.epoch2.json"), "[\n" + header(1, "") + span(1, "late", "7.000"));
  write(at("t.notes.json"), "no part");
  write(at("t.1.begin2.json"), "no part");
  write(at("t.json"), "what an earlier run left");

  const std::vector<std::string> parts = find_parts(at("t.json"));
  REQUIRE(parts == std::vector<std::string>{at("t.0.json"), at("t.1.json"), at("t.1.epoch2.json")});
  const Merged merged = merge_traces(parts, at("t.json"));
  CHECK(merged.dropped == 7);
  CHECK(merged.unreadable == 1);
  CHECK(merged.unaligned == std::vector<std::size_t>{2});
  // The first one alone has its end.
  CHECK(merged.endless == std::vector<std::size_t>{1, 2});
  std::ifstream file(at("t.json"));
  const Json json = Json::parse(file);
  CHECK(json["traceEvents"].size() == merged.events);
  CHECK(named(json, "work", 0)["ts"].get<double>() == 5000000000000.001);
  CHECK(named(json, "work", 1)["ts"].get<double>() == 1020.0);
  CHECK(named(json, "work", 1)["dur"].get<double>() == 2.5);
  CHECK(named(json, "late", 1'000'000)["ts"].get<double>() == 7.0);
  CHECK(named(json, "ringlet_trace", 1)["args"]["clock_error_ns"] == 40);
  CHECK(named(json, "ringlet_trace", 1'000'000)["args"]["aligned"] == false);
  CHECK(named(json, "cut", 1).is_null());
  CHECK_FALSE(std::filesystem::exists(at("t.json.unfinished")));
}

TEST_CASE("events of other sorts than Ringlet's are taken as they are") {
  const ringlet::test::TemporaryDirectory directory;
  const std::string part = directory.path() + "/t.0.json", out = directory.path() + "/t.json";
  write(part, R"([
{"name":"ringlet_trace","ph":"i","ts":1,"pid":0,"args":{"clock":5}},
{"name":"ringlet_trace_end","ph":"X","ts":1,"dur":0,"pid":0,"args":{"dropped_by_threads":"many"}},
{"name":"clock","ph":"X","ts":1.5,"dur":2e3,"pid":0,"args":{"epoch":-1,"job":7}},
{"name":"ringlet_other","ph":"M","pid":0,"args":{}},
{ "name" : "grüße", "ph" : "C", "ts" : -7, "pid" : 0, "tid" : 3 }
]
)");
  const Merged merged = merge_traces({part}, out);
  CHECK(merged.events == 5);
  CHECK(merged.unreadable == 0);
  CHECK(merged.dropped == 0);
  std::ifstream file(out);
  CHECK(Json::parse(file)["traceEvents"].size() == 5);
}

TEST_CASE("several processes in a row may have written one part, each cut short") {
  const ringlet::test::TemporaryDirectory directory;
  const std::string part = directory.path() + "/t.0.json", out = directory.path() + "/t.json";
  const std::string end = R"({"name":"ringlet_trace_end","ph":"M","pid":0,"args":{"dropped_by_threads":1,"dropped_by_file":0}})";
  write(part, "[\n" + header(0, "a") + end + "\n]\n[\n" + header(0, "a") + "{\"name\":\"c[\n" + header(0, "a") + span(0, "b", "2.000") +
                  end + "\n]\n");
  const Merged whole = merge_traces({part}, out);
  CHECK(whole.unreadable == 1);
  CHECK(whole.events == 6);
  CHECK(whole.dropped == 2);
  CHECK(whole.endless.empty());
  write(part, "[\n" + header(0, "a") + end + "\n]\n[\n" + header(0, "a"));
  CHECK(merge_traces({part}, out).endless == std::vector<std::size_t>{0});
  // Killed at once.
  for (const char* text : {"", "["}) {
    write(part, text);
    const Merged nothing = merge_traces({part}, out);
    CHECK(nothing.events == 0);
    CHECK(nothing.endless == std::vector<std::size_t>{0});
  }
}

TEST_CASE("what cannot be read or written is said, and an earlier trace stays") {
  const ringlet::test::TemporaryDirectory directory;
  const std::string out = directory.path() + "/t.json";
  write(out, "earlier");
  CHECK_THROWS_WITH(merge_traces({directory.path() + "/t.0.json"}, out), Contains("t.0.json' cannot be read: No such file"));
  CHECK_THROWS_WITH(merge_traces({}, directory.path() + "/none/t.json"), Contains("none/t.json' cannot be written: No such file"));
  CHECK_THROWS_WITH(find_parts(directory.path() + "/none/t.json"), Contains("cannot be read"));
  const int other = ringlet::native::open_alone(out + ".unfinished");
  REQUIRE(other >= 0);
  CHECK_THROWS_WITH(merge_traces({}, out), Contains("t.json' cannot be written: another process is making a trace of that name"));
  CHECK(std::filesystem::exists(out + ".unfinished"));
  ::close(other);
  std::ifstream file(out);
  std::string text;
  std::getline(file, text);
  CHECK(text == "earlier");
  CHECK(find_parts(out).empty());
}

TEST_CASE("what is found in a line without parsing it is what a parser finds, and nothing is wrong with it") {
  const std::vector<std::string> lines{
      R"({"name":"all_reduce","cat":"bucket","ph":"X","ts":12345.678,"dur":2.500,"pid":3,"tid":1,"args":{"bytes":4,"failed":true}})",
      R"({"name":"send","ph":"b","id2":{"local":"1"},"ts":5000000000000.001,"pid":0,"tid":2,"args":{}})",
      R"({"name":"a \"b\" \\ ,\"ts\":5","ph":"X","dur":0,"ts":-7.5,"pid":2,"args":{"ts":1,"pid":9,"lost":[0,2,[]]}})",
      R"({"pid":1,"name":"","other":-1.5e+7,"ts":3,"x":null,"y":false,"ph":"e","id2":{}})", R"({"name":"n","pid":0,"ph":"M","args":{}})"};
  int plain = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    ringlet::SimRandom random(seed);
    std::string line = lines[random.below(lines.size())];
    // Most of what changes makes it no JSON, or other JSON.
    for (auto count = random.below(4); count > 0; --count) {
      const auto at = static_cast<std::size_t>(random.below(line.size()));
      const std::string_view letters = "\"\\,:{}[]0159-+.eE tsu\xc3\xa9";
      if (random.below(2) == 0)
        line[at] = letters[random.below(letters.size())];
      else
        line.erase(at, 1 + random.below(3));
      if (line.empty()) line = "{";
    }
    CAPTURE(seed, line);
    const auto found = EventLine::find(line);
    if (!found) continue;
    ++plain;
    const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
    REQUIRE(json.is_object());
    CHECK(find_fault(json).value_or("nothing") == "nothing");
    CHECK(json["name"] == nlohmann::ordered_json::parse("\"" + std::string(found->name) + "\""));
    CHECK(json["pid"] == found->process);
    CHECK(json["ts"] == nlohmann::ordered_json::parse(found->ts));
    CHECK(json["ts"].get<double>() * 1000 == Approx(static_cast<double>(found->at_ns)).epsilon(1e-12));
  }
  CHECK(plain > 500);
  for (const std::string_view odd : {"", "-", ".", "1.", ".5", "1.2345", "1e3", "0x1", "1234567890123456", "1.-5", "+1"})
    CHECK_FALSE(nanoseconds_in(odd));
  CHECK(nanoseconds_in("5000000000000.001") == 5'000'000'000'000'001);
  CHECK(nanoseconds_in("-0.02") == -20);
}

TEST_CASE("times keep their nanoseconds, also before the first part's clock began") {
  const ringlet::test::TemporaryDirectory directory;
  const auto at = [&](const std::string& name) { return directory.path() + "/" + name; };
  write(at("t.0.json"), "[\n" + header(0, "a") + seat(0, 0));
  write(at("t.1.json"),
        "[\n" + header(1, "b") + seat(1, 1) +
            R"({"name":"clock","ph":"i","s":"p","ts":10.000,"pid":1,"tid":0,"args":{"epoch":0,"offset_ns":-5000000,"error_ns":40}},)" +
            "\n" + span(1, "early", "20.001") + R"({"pid":1,"name":"first the process","ph":"X","dur":1,"ts":6000.5,"args":{}},)" + "\n");
  merge_traces({at("t.0.json"), at("t.1.json")}, at("t.json"));
  std::ifstream file(at("t.json"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK_THAT(text, Contains(R"({"name":"early","ph":"X","ts":-4979.999,"dur":2.500,"pid":1,)"));
  CHECK_THAT(text, Contains(R"({"pid":1,"name":"first the process","ph":"X","dur":1,"ts":1000.500,"args":{}})"));
}

TEST_CASE("a watch hears how far the reading is, and ends it without a trace of it") {
  const ringlet::test::TemporaryDirectory directory;
  const std::string part = directory.path() + "/t.0.json", out = directory.path() + "/t.json";
  write(out, "earlier");
  {
    std::ofstream file(part);
    file << "[\n";
    for (int i = 0; i < 40'000; ++i) file << span(0, "work", std::to_string(i) + ".000");
  }
  const std::uint64_t bytes = std::filesystem::file_size(part);
  std::vector<std::uint64_t> heard;
  const auto listen = [&](std::uint64_t read_bytes, std::uint64_t all_bytes) {
    CHECK(all_bytes == bytes);
    CHECK(read_bytes <= all_bytes);
    heard.push_back(read_bytes);
    return true;
  };
  CHECK(merge_traces({part}, out, listen).events == 40'000);
  CHECK(heard.size() >= 4);
  CHECK(std::is_sorted(heard.begin(), heard.end()));

  write(out, "earlier");
  for (const std::size_t calls : {std::size_t{0}, heard.size() - 1}) {
    std::size_t count = 0;
    CHECK_THROWS_AS(merge_traces({part}, out, [&](std::uint64_t, std::uint64_t) { return count++ < calls; }), MergeStopped);
    std::ifstream file(out);
    std::string text;
    std::getline(file, text);
    CHECK(text == "earlier");
    CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 2);
  }
}

TEST_CASE("parts are told apart by their jobs, of which the newest one counts") {
  const ringlet::test::TemporaryDirectory directory;
  std::vector<std::string> parts;
  const auto add = [&](const std::string& name, int began, const std::string& job) {
    parts.push_back(directory.path() + "/" + name);
    std::string text = R"({"name":"ringlet_trace","ph":"M","pid":0,"args":{"clock":"a","began_ms":)" + std::to_string(began) + "}},\n";
    text += span(0, "job", "1.000");
    if (!job.empty())
      text += R"({"name":"world","ph":"i","ts":2.0,"pid":0,"args":{"job":")" + job + R"(","lineage":"0","epoch":0,"rank":0}},)" + "\n";
    // A process may form further groups.
    text += R"({"name":"world","ph":"i","ts":3.0,"pid":0,"args":{"job":"later","lineage":"0","epoch":0,"rank":0}},)";
    write(parts.back(), "[\n" + (job.empty() ? text.substr(0, text.find("later")) : text));
  };
  add("old.0", 100, "a");
  add("new.1", 90, "b");   // its machine's calendar is behind
  add("new.2", 300, "b");  // joined later
  add("old.3", 200, "a");
  add("none", 500, "");
  CHECK(job_of_part(parts[1]).job == "b");
  CHECK(job_of_part(parts[1]).began_ms == 90);
  CHECK(job_of_part(parts[4]).job.empty());
  const PartsByJob sorted = sort_by_job(parts);
  CHECK(sorted.newest == std::vector<std::string>{parts[1], parts[2]});
  CHECK(sorted.others == std::vector<std::string>{parts[0], parts[3]});
  CHECK(sorted.without == std::vector<std::string>{parts[4]});
  // Where nothing is known, nothing is told apart.
  CHECK(sort_by_job({parts[4]}).newest == std::vector<std::string>{parts[4]});
  CHECK_THROWS_WITH(sort_by_job({directory.path() + "/missing"}), Contains("cannot be read"));
  const std::string fifo = directory.path() + "/t.9.json";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_FALSE(is_merged(fifo));
}
