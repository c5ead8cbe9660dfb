#include "tools/trace/trace_reader.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_directory.hpp"
#include "tools/trace/merge.hpp"
#include "tools/trace/part_jobs.hpp"
#include "tools/trace/summary.hpp"
#include "tools/trace/trace_part.hpp"

using namespace ringlet::trace;
using Catch::Contains;
using ringlet::test::TemporaryDirectory;

namespace {

const std::string kSpan = R"({"name":"work","cat":"program","ph":"X","ts":1.0,"dur":2.0,"pid":0,"tid":1,"args":{}})";

struct File {
  TemporaryDirectory directory{};
  std::string path = directory.path() + "/t.0.json";

  const std::string& with(const std::string& text) const {
    std::ofstream(path) << text;
    return path;
  }
};

/// What reading to the end throws.
std::string refusal_of(const std::string& path) {
  try {
    TraceReader reader(path);
    while (reader.next()) (void)reader.event();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an event that is not as Ringlet writes it is refused by its line, and quoted") {
  const File file;
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"name":"w","ph":"X","ts":1.0)", "it is no JSON"},
      {"17", "it is no JSON object"},
      {"[]", "it is no JSON object"},
      {R"({"name":"w","ph":"X","ts":1e999,"dur":1,"pid":0})", "it is no JSON"},
      {R"({"ph":"X","ts":1,"dur":1,"pid":0})", "its \"name\" has to be a text"},
      {R"({"name":7,"ph":"X","ts":1,"dur":1,"pid":0})", "its \"name\" has to be a text"},
      {R"({"name":"w","ts":1,"dur":1,"pid":0})", "its \"ph\" has to be a text"},
      {R"({"name":"w","ph":"XX","ts":1,"dur":1,"pid":0})", "its \"ph\" has to be one letter"},
      {R"({"name":"w","ph":"X","ts":1,"dur":1})", "its \"pid\" has to be a whole number from 0 to 2147483647"},
      {R"({"name":"w","ph":"X","ts":1,"dur":1,"pid":-1})", "its \"pid\" has to be a whole number"},
      {R"({"name":"w","ph":"X","ts":1,"dur":1,"pid":2147483648})", "its \"pid\" has to be a whole number"},
      {R"({"name":"w","ph":"X","ts":1,"dur":1,"pid":18446744073709551615})", "its \"pid\" has to be a whole number"},
      {R"({"name":"w","ph":"X","ts":1,"dur":1,"pid":0.5})", "its \"pid\" has to be a whole number"},
      {R"({"name":"w","ph":"X","dur":1,"pid":0})",
       "its \"ts\" has to be a number of microseconds from -1000000000000000 to 1000000000000000"},
      {R"({"name":"w","ph":"i","ts":"soon","pid":0})", "its \"ts\" has to be a number of microseconds"},
      {R"({"name":"w","ph":"X","ts":1e300,"dur":1,"pid":0})", "its \"ts\" has to be a number of microseconds"},
      {R"({"name":"w","ph":"X","ts":-1000000000000001,"dur":1,"pid":0})", "its \"ts\" has to be a number of microseconds"},
      {R"({"name":"w","ph":"X","ts":1,"pid":0})", "its \"dur\" has to be a number of microseconds from 0 to 1000000000000000"},
      {R"({"name":"w","ph":"X","ts":1,"dur":-0.001,"pid":0})", "its \"dur\" has to be a number of microseconds from 0"},
      {R"({"name":"w","ph":"X","ts":1,"dur":null,"pid":0})", "its \"dur\" has to be a number of microseconds from 0"},
      {R"({"name":"w","ph":"b","ts":1,"pid":0})", "its \"id2\" has to be an object"},
      {R"({"name":"w","ph":"i","ts":1,"pid":0,"args":3})", "its \"args\" has to be an object"},
      {R"({"name":"ringlet_trace","ph":"M","pid":0})", "its \"args\" has to be an object"},
      {R"({"name":"ringlet_trace","ph":"M","pid":0,"args":{"clock":5}})", "its \"clock\" has to be a text"},
      {R"({"name":"ringlet_trace_end","ph":"M","pid":0,"args":{"dropped_by_threads":"many"}})",
       "its \"dropped_by_threads\" has to be a whole number"},
      {R"({"name":"process_name","ph":"M","pid":0,"args":{"name":3}})", "its \"name\" has to be a text"},
      {R"({"name":"clock","ph":"i","ts":1,"pid":0,"args":{"epoch":0,"offset_ns":9000000000000000000,"error_ns":1}})",
       "its \"offset_ns\" has to be a whole number"},
      {R"({"name":"clock","ph":"i","ts":1,"pid":0,"args":{"epoch":0,"offset_ns":1,"error_ns":-1}})",
       "its \"error_ns\" has to be a whole number"},
      {R"({"name":"clock","ph":"i","ts":1,"pid":0,"args":{"epoch":-1,"offset_ns":1,"error_ns":1}})",
       "its \"epoch\" has to be a whole number"},
      {R"({"name":"world","ph":"i","ts":1,"pid":0,"args":{"lineage":"a","epoch":0,"rank":4294967296}})",
       "its \"rank\" has to be a whole number"},
      {R"({"name":"world","ph":"i","ts":1,"pid":0,"args":{"lineage":7,"epoch":0,"rank":0}})", "its \"lineage\" has to be a text"},
  };
  for (const auto& [line, fault] : cases) {
    CAPTURE(line);
    const std::string wanted = "'" + file.path + "' is no trace of Ringlet's; line 3: " + fault;
    file.with("[\n" + kSpan + ",\n" + line + ",\n" + kSpan + "\n]\n");
    CHECK_THAT(refusal_of(file.path), Contains(wanted) && Contains(": '" + line.substr(0, 50)));
    CHECK_THROWS_WITH(summarize(file.path, std::nullopt), Contains(wanted));
    CHECK_THROWS_WITH(merge_traces({file.path}, file.directory.path() + "/t.json"), Contains(wanted));
  }
}

TEST_CASE("a quoted line is short, and does nothing to a terminal") {
  const File file;
  const std::string told = refusal_of(file.with("[\n\x1b[31m\x01 \xff \xc3\xa9" + std::string(100'000, 'x') + "\n"));
  CHECK_THAT(told, Contains("line 2: it is no JSON: '?[31m? ? \xc3\xa9xxx") && Contains("xxx'..."));
  CHECK(told.size() < 4096);
  CHECK(told.find('\x1b') == std::string::npos);
  // Nor does a line without an end fill the memory.
  const std::string at_most(TraceReader::kMaxLineBytes, 'x');
  CHECK_THAT(refusal_of(file.with("[\n" + at_most + "\n")), Contains("line 2: it is no JSON"));
  CHECK_THAT(refusal_of(file.with("[\n" + at_most + "x\n")), Contains("line 2: the line has more than 1048576 bytes: 'xxx"));
  CHECK_THAT(refusal_of(file.with("[\n" + at_most + "xxx")), Contains("line 2: the line has more than 1048576 bytes"));
  CHECK(refusal_of(file.path).size() < 4096);
}

TEST_CASE("what begins in another way is no trace, and a merged one has to be whole") {
  const File file;
  const std::string begin = std::string(kBeginOfMerged) + "\n", end = std::string(kEndOfMerged) + "\n";
  const std::vector<std::string> others{"no trace\n", "{}\n", "[" + kSpan + "]\n", "{\n", begin.substr(0, 20) + "\n", "\n"};
  for (const std::string& text : others) {
    CAPTURE(text);
    CHECK_THAT(refusal_of(file.with(text)), Contains("line 1: a trace of Ringlet's begins in another way: '"));
    CHECK_FALSE(is_merged(file.path));
    CHECK_THROWS_WITH(sort_by_job({file.path}), Contains("is no trace of Ringlet's"));
  }
  CHECK(refusal_of(file.with(begin + end)).empty());
  CHECK(refusal_of(file.with(begin + kSpan + ",\n" + kSpan + "\n" + end)).empty());
  CHECK(is_merged(file.path));
  for (const std::string& cut : {std::string(), kSpan + ",\n", kSpan + ",\n" + kSpan + "\n"})
    CHECK(refusal_of(file.with(begin + cut)) == "'" + file.path + "' is cut short: it lacks the end of a merged trace");
  CHECK_THAT(refusal_of(file.with(begin + kSpan.substr(0, 30))), Contains("line 2: it is no JSON"));
  CHECK_THAT(refusal_of(file.with(begin + end + kSpan + "\n")), Contains("line 3: it stands behind the end of the merged trace"));
  CHECK_THROWS_WITH(merge_traces({file.with(begin + end)}, file.directory.path() + "/t.json"),
                    Contains("is a merged trace, and not one rank's part"));
}

TEST_CASE("a part that was cut short anywhere is read as far as it is whole") {
  const File file;
  const std::string text = "[\n" + kSpan + ",\n" + kSpan + ",\n" + kSpan + "\n]\n";
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    CAPTURE(bytes);
    TraceReader reader(file.with(text.substr(0, bytes)));
    std::uint64_t events = 0;
    for (; reader.next(); ++events) CHECK(reader.event()["name"] == "work");
    const std::size_t line = kSpan.size() + 2,
                      whole = bytes < 2 ? 0 : std::min<std::size_t>((bytes - 2 + (bytes >= text.size() - 2 ? 1 : 0)) / line, 3);
    CHECK(events == whole);
    CHECK(reader.cut_lines() <= 1);
  }
}
