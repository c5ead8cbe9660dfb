#include "native/trace/trace_events.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <ringlet/trace.hpp>
#include <string>

#include "native/trace/output_file.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using namespace ringlet::native;
using Json = nlohmann::json;

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
  const Json whole = Json::parse(to_trace_event(record, 5));
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
  const std::string text = to_trace_events(record, 5, "messages \"sent\"", 7);
  const auto cut = text.find(",\n");
  REQUIRE(cut != std::string::npos);
  const Json begin = Json::parse(text.substr(0, cut)), end = Json::parse(text.substr(cut + 2));
  CHECK(begin["ph"] == "b");
  CHECK(end["ph"] == "e");
  for (const Json& half : {begin, end}) {
    CHECK(half["name"] == "messages \"sent\"");
    CHECK(half["cat"] == "program");
    CHECK(half["id2"] == Json({{"local", "7"}}));
    CHECK(half["args"]["number"] == 9);
  }
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
