#include "tools/trace/merge.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_directory.hpp"
#include "tools/trace/trace_part.hpp"

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
  CHECK(merged.parts == 3);
  CHECK(merged.dropped == 7);
  CHECK(merged.unreadable == 1);
  CHECK(merged.unaligned == std::vector<std::string>{at("t.1.epoch2.json")});
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

TEST_CASE("events that say something else than expected are taken as they are") {
  const ringlet::test::TemporaryDirectory directory;
  const std::string part = directory.path() + "/t.0.json", out = directory.path() + "/t.json";
  write(part, R"([
{"name":7,"ph":[],"pid":"x","ts":"soon","args":3},
{"name":"ringlet_trace","ph":"M","pid":0,"args":{"clock":5}},
{"name":"ringlet_trace","ph":"M","pid":0},
{"name":"ringlet_trace_end","ph":"M","pid":0,"args":{"dropped_by_threads":"many"}},
{"name":"ringlet_trace_end","ph":"M","pid":0},
{"name":"clock","ph":"i","ts":null,"args":{"epoch":-1}},
17,
null
]
)");
  const Merged merged = merge_traces({part}, out);
  CHECK(merged.events == 6);
  CHECK(merged.unreadable == 2);
  CHECK(merged.dropped == 0);
  std::ifstream file(out);
  CHECK(Json::parse(file)["traceEvents"].size() == 6);
}

TEST_CASE("what cannot be read or written is said, and an earlier trace stays") {
  const ringlet::test::TemporaryDirectory directory;
  const std::string out = directory.path() + "/t.json";
  write(out, "earlier");
  CHECK_THROWS_WITH(merge_traces({directory.path() + "/t.0.json"}, out), Contains("t.0.json' cannot be read: No such file"));
  CHECK_THROWS_WITH(merge_traces({}, directory.path() + "/none/t.json"), Contains("none/t.json.unfinished' cannot be written"));
  CHECK_THROWS_WITH(find_parts(directory.path() + "/none/t.json"), Contains("cannot be read"));
  std::ifstream file(out);
  std::string text;
  std::getline(file, text);
  CHECK(text == "earlier");
  CHECK(find_parts(out).empty());
}
