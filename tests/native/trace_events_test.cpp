#include "native/trace/trace_events.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <ringlet/trace.hpp>
#include <string>

#include "native/output_file.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using namespace ringlet::native;
using Json = nlohmann::json;

namespace {

std::array<Json, 2> halves_of(const EventText& text) {
  const auto cut = text.text().find(",\n");
  REQUIRE(cut != std::string::npos);
  return {Json::parse(text.text().substr(0, cut)), Json::parse(text.text().substr(cut + 2))};
}

}  // namespace

TEST_CASE("events are JSON, whatever their names hold") {
  TraceRecord record;
  record.track = 2;
  record.category = kProgramCategory;
  record.begin = {1009};
  record.end = {2009};
  record.number = 9;
  record.name = "a \"b\"\n\\ \xff";
  record.peer = 1;
  record.bytes = 4096;
  record.dtype = "float32";
  record.algorithm = "ring";
  record.failed = true;
  EventText text;
  text.add_span(record, 5);
  const Json whole = Json::parse(text.text());
  CHECK(whole["ph"] == "X");
  CHECK(whole["cat"] == "program");
  CHECK(whole["name"] == "a \"b\"\n\\ \xef\xbf\xbd");
  CHECK(whole["ts"] == 1.009);
  CHECK(whole["dur"] == 1.0);
  CHECK(whole["pid"] == 5);
  CHECK(whole["tid"] == 2);
  CHECK(whole["args"] ==
        Json({{"peer", 1}, {"bytes", 4096}, {"number", 9}, {"dtype", "float32"}, {"algorithm", "ring"}, {"failed", true}}));

  record.overlaps = true;
  text.clear();
  text.add_pair(record, 5, "messages \"sent\"", 7);
  const auto [begin, end] = halves_of(text);
  CHECK(begin["ph"] == "b");
  CHECK(end["ph"] == "e");
  for (const Json& half : {begin, end}) {
    CHECK(half["name"] == "messages \"sent\"");
    CHECK(half["cat"] == "program");
    CHECK(half["id2"] == Json({{"local", "7"}}));
  }
  CHECK(begin["args"] == whole["args"]);
  CHECK(begin["ts"].get<double>() == 1.009);
  CHECK(end["ts"].get<double>() == 2.009);

  const Json clock = Json::parse(to_trace_event(ClockReading{3, {5000}, {-70}, {12}}, 1));
  CHECK(clock["args"] == Json({{"epoch", 3}, {"offset_ns", -70}, {"error_ns", 12}}));
  const Json world = Json::parse(to_trace_event(TracedWorld{0x1f, 2, 0xab, 1, 3, true, {0, 2}}, {1}, 1));
  CHECK(world["name"] == "world of 3, epoch 2: rank 0, 2 of the one before lost: joined");
  CHECK(world["args"]["job"] == "000000000000001f");
  CHECK(world["args"]["lineage"] == "00000000000000ab");
  CHECK(world["args"]["lost"] == Json({0, 2}));
}

TEST_CASE("events hold the largest and the smallest numbers, and long names") {
  const auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  TraceRecord record;
  const std::string name(3000, '\n'), word(3000, 'w');
  record.name = name;
  record.category = record.dtype = record.algorithm = word;
  record.track = std::numeric_limits<std::uint32_t>::max();
  record.peer = std::numeric_limits<int>::max();
  record.bytes = record.number = std::numeric_limits<std::uint64_t>::max();
  record.begin = {least};
  record.end = {least + most};
  record.failed = true;
  EventText text;
  text.add_span(record, std::numeric_limits<int>::min());
  const Json whole = Json::parse(text.text());
  CHECK(whole["name"] == name);
  CHECK(whole["pid"] == std::numeric_limits<int>::min());
  CHECK(whole["tid"] == record.track);
  CHECK(whole["dur"] == 9223372036854775.807);
  CHECK(whole["args"]["number"] == record.number);
  CHECK(whole["args"]["algorithm"] == word);
  text.clear();
  text.add_pair(record, -1, name, record.number);
  for (const Json& half : halves_of(text)) {
    CHECK(half["name"] == name);
    CHECK(half["id2"] == Json({{"local", "18446744073709551615"}}));
  }
}

TEST_CASE("times are microseconds with their nanoseconds, on either side of zero") {
  CHECK(microseconds(0) == "0.000");
  CHECK(microseconds(1'234'567) == "1234.567");
  CHECK(microseconds(-1'500) == "-1.500");
  CHECK(microseconds(-7) == "-0.007");
  CHECK(microseconds(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775.808");
}

TEST_CASE("the name of a span ends between characters") {
  const auto kept = [](const std::string& name) { return std::string(detail::SpanName::of(name).text.data()); };
  CHECK(kept("step") == "step");
  CHECK(kept(std::string(39, 'x')) == std::string(39, 'x'));
  CHECK(kept(std::string(40, 'x')) == std::string(39, 'x'));
  const std::string euro = "\xe2\x82\xac", smile = "\xf0\x9f\x98\x80";
  for (const std::string& character : {euro, smile})
    for (std::size_t before = 30; before <= 39; ++before) {
      CAPTURE(character, before);
      const std::string name = std::string(before, 'x') + character;
      CHECK(kept(name + "yyyyyyyyyy").starts_with(std::string(before, 'x') + (name.size() <= 39 ? character : "")));
      CHECK(kept(name + "yyyyyyyyyy").size() == (name.size() <= 39 ? 39 : before));
    }
}

TEST_CASE("what a system tells only of a file that is closed is an error, too") {
  const test::TemporaryDirectory directory;
  const auto open = [&] { return ::open((directory.path() + "/f").c_str(), O_WRONLY | O_CREAT, 0600); };
  {
    const int descriptor = open();
    OutputFile file(descriptor);
    CHECK(file.write("x"));
    CHECK(file.settle());
    CHECK(file.is_open());
    CHECK(file.write("y"));
    CHECK(file.close());
    CHECK_FALSE(file.is_open());
  }
  CHECK(std::filesystem::file_size(directory.path() + "/f") == 2);
  const int lost = open();
  OutputFile file(lost);
  REQUIRE(::close(lost) == 0);
  CHECK_FALSE(file.settle());
  CHECK(file.error() == "Bad file descriptor");
  CHECK_FALSE(file.close());
  CHECK_FALSE(file.write("z"));
}
