#include "tools/trace/part_files.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "native/trace/trace_file.hpp"
#include "tests/temporary_directory.hpp"

using Catch::Contains;
using ringlet::test::TemporaryDirectory;
using ringlet::trace::find_obstacle;
using ringlet::trace::PartFiles;
using Json = nlohmann::json;

TEST_CASE("parts that come in pieces become one file, and are gone") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  std::ofstream(directory.path() + "/t.1.json") << "what an earlier run left";
  PartFiles parts(file);
  CHECK(parts.empty());
  parts.add(1, 0, "[\n{\"name\":\"a\",\"ph\":\"X\",\"ts\":1.0,\"pid\":1},\n{\"na");
  parts.add(0, 0, "");
  parts.add(1, 1, "[\n{\"name\":\"again\",\"ph\":\"X\",\"ts\":3.0,\"pid\":1},\n");
  parts.add(1, 0, "me\":\"b\",\"ph\":\"X\",\"ts\":2.0,\"pid\":1}\n]\n");
  CHECK(parts.has(1));
  CHECK_FALSE(parts.has(0));
  // What came last is not known to be all, and of rank 0 all has come, which is nothing.
  CHECK(parts.is_whole(0, 0));
  CHECK(parts.bytes_of(0, 0) == 0);
  CHECK_FALSE(parts.is_whole(1, 1));
  CHECK(parts.bytes_of(1, 1) == 46);
  parts.add(1, 1, "");
  CHECK(parts.is_whole(1, 1));
  const auto merged = parts.merge();
  CHECK(merged.parts == 2);
  CHECK(merged.events == 3);
  std::ifstream whole(file);
  const Json json = Json::parse(whole);
  CHECK(json["traceEvents"][1]["name"] == "b");
  CHECK(json["traceEvents"][2]["pid"] == 1'000'000);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a part that cannot be written is told at the end, and the others stay") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory.path() + "/t.0.json");
  PartFiles parts(directory.path() + "/t.json");
  parts.add(0, 0, "[\n");
  parts.add(0, 0, "{}\n");
  parts.add(1, 0, "[\n{}\n");
  CHECK_THROWS_WITH(parts.merge(), Contains("t.0.json' cannot be written: No space left on device"));
  CHECK(std::filesystem::exists(directory.path() + "/t.1.json"));
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/t.json"));
}

TEST_CASE("an obstacle is found before anything is traced, and nothing is left of the trial") {
  const TemporaryDirectory directory;
  CHECK(find_obstacle(directory.path() + "/t.json").empty());
  CHECK(std::filesystem::is_empty(directory.path()));
  CHECK(find_obstacle(directory.path() + "/none/t.json") == "No such file or directory");
  CHECK(find_obstacle(directory.path()) == "it is a directory");
  const int other = ringlet::native::open_alone(directory.path() + "/t.json.unfinished");
  CHECK(find_obstacle(directory.path() + "/t.json") == "another process is putting it together");
  CHECK(std::filesystem::exists(directory.path() + "/t.json.unfinished"));
  ::close(other);
}

TEST_CASE("a part that another process is writing is left to it, and told") {
  const TemporaryDirectory directory;
  const std::string taken = directory.path() + "/t.0.json";
  const int writer = ringlet::native::open_alone(taken);
  REQUIRE(writer >= 0);
  REQUIRE(::write(writer, "theirs", 6) == 6);
  PartFiles parts(directory.path() + "/t.json");
  parts.add(0, 0, "[\n{}\n");
  parts.add(1, 0, "[\n{}\n");
  CHECK_THROWS_WITH(parts.merge(), Contains("t.0.json' is being written by another process"));
  std::ifstream file(taken);
  std::string text;
  std::getline(file, text);
  CHECK(text == "theirs");
  ::close(writer);
}
