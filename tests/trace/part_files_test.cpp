#include "tools/trace/part_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "native/output_file.hpp"
#include "tests/temporary_directory.hpp"

using Catch::Contains;
using ringlet::test::TemporaryDirectory;
using ringlet::trace::PartFiles;
using ringlet::trace::RankProcess;
using Json = nlohmann::json;

TEST_CASE("parts that come in pieces become one file, and are gone") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  std::ofstream(directory.path() + "/t.1.json") << "what an earlier run left";
  PartFiles parts(file);
  CHECK(parts.empty());
  parts.add({1, 0}, "[\n{\"name\":\"a\",\"ph\":\"X\",\"ts\":1.0,\"dur\":1,\"pid\":1},\n{\"na");
  parts.add({0, 0}, "");
  parts.add({1, 1}, "[\n{\"name\":\"again\",\"ph\":\"X\",\"ts\":3.0,\"dur\":1,\"pid\":1},\n");
  parts.add({1, 0}, "me\":\"b\",\"ph\":\"X\",\"ts\":2.0,\"dur\":1,\"pid\":1}\n]\n");
  CHECK(parts.processes() == std::vector<RankProcess>{{1, 0}, {1, 1}});
  // What came last is not known to be all, and of rank 0 all has come, which is nothing.
  CHECK(parts.is_whole({0, 0}));
  CHECK(parts.bytes_of({0, 0}) == 0);
  CHECK_FALSE(parts.is_whole({1, 1}));
  CHECK(parts.bytes_of({1, 1}) == 54);
  parts.add({1, 1}, "");
  CHECK(parts.is_whole({1, 1}));
  const auto merged = parts.merge();
  CHECK(merged.events == 3);
  std::ifstream whole(file);
  const Json json = Json::parse(whole);
  CHECK(json["traceEvents"][1]["name"] == "b");
  CHECK(json["traceEvents"][2]["pid"] == 1'000'000);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a part that cannot be written is told, and the others become the trace") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory.path() + "/t.0.json");
  PartFiles parts(directory.path() + "/t.json");
  parts.add({0, 0}, "[\n");
  parts.add({0, 0}, "{}\n");
  parts.add({1, 0}, "[\n{\"name\":\"a\",\"ph\":\"X\",\"ts\":1.0,\"dur\":1,\"pid\":1}\n");
  CHECK_THAT(parts.error_of({0, 0}), Contains("t.0.json' cannot be written: No space left on device"));
  CHECK(parts.bytes_of({0, 0}) == 0);
  CHECK(parts.error_of({1, 0}).empty());
  CHECK(parts.processes() == std::vector<RankProcess>{{1, 0}});
  CHECK(parts.merge().events == 1);
  CHECK(std::filesystem::exists(directory.path() + "/t.json"));
}

TEST_CASE("where no part can be written, there is no trace") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", directory.path() + "/t.0.json");
  PartFiles parts(directory.path() + "/t.json");
  parts.add({0, 0}, "[\n");
  CHECK_THROWS_WITH(parts.merge(), Contains("t.0.json' cannot be written: No space left on device"));
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/t.json"));
}

TEST_CASE("a trace takes the place of a file alone, and goes behind links") {
  const TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe", link = directory.path() + "/link", target = directory.path() + "/target";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(PartFiles(pipe), Contains("pipe' cannot be written: it is a device, a pipe or a socket, and no file"));
  if (std::filesystem::exists("/dev/null")) CHECK_THROWS_WITH(PartFiles("/dev/null"), Contains("and no file"));
  std::filesystem::create_symlink(target, link);
  CHECK_THROWS_WITH(PartFiles(link), Contains("link' cannot be written: it is a symbolic link to nothing"));
  std::ofstream(target) << "old";
  PartFiles parts(link);
  parts.add({0, 0}, "[\n{\"name\":\"a\",\"ph\":\"X\",\"ts\":1.0,\"dur\":1,\"pid\":1}\n");
  parts.merge();
  CHECK(std::filesystem::is_symlink(link));
  std::ifstream whole(target);
  CHECK(Json::parse(whole)["traceEvents"].size() > 0);
  CHECK(std::filesystem::is_fifo(pipe));
}

TEST_CASE("an obstacle is found before anything is traced, and nothing is left of the trial") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  {
    const PartFiles parts(file);
  }
  CHECK(std::filesystem::is_empty(directory.path()));
  CHECK_THROWS_WITH(PartFiles(directory.path() + "/none/t.json"), Contains("none/t.json' cannot be written: No such file or directory"));
  CHECK_THROWS_WITH(PartFiles(directory.path()), Contains("' cannot be written: it is a directory"));
}

TEST_CASE("as long as parts are gathered, no other process gathers or merges under their name") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json",
                    taken = "t.json' cannot be written: another process is making a trace of that name";
  PartFiles parts(file);
  parts.add({0, 0}, "[\n");
  CHECK_THROWS_WITH(PartFiles(file), Contains(taken));
  CHECK_THROWS_WITH(ringlet::trace::merge_traces({directory.path() + "/t.0.json"}, file), Contains(taken));
  {
    const PartFiles others(directory.path() + "/u.json");
  }
  parts.merge();
  CHECK(std::filesystem::exists(file));
  // What the others tried has left the first one's file as it was.
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a file whose merging fails, or ends early, is not there, and lets the next one in") {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/t.json";
  {
    PartFiles parts(file);
    parts.add({0, 0}, "[\nnothing\n");
    CHECK_THROWS_WITH(parts.merge(), Contains("t.0.json' is no trace of Ringlet's; line 2: it is no JSON: 'nothing'"));
  }
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK_FALSE(std::filesystem::exists(file + ".unfinished"));
  const PartFiles next(file);
}

TEST_CASE("what is told only when a part is closed is told, too") {
  const TemporaryDirectory directory;
  PartFiles parts(directory.path() + "/t.json");
  // The part gets the lowest number, and loses it behind its back.
  const int descriptor = ::dup(0);
  ::close(descriptor);
  parts.add({0, 0}, "[\n");
  REQUIRE(::close(descriptor) == 0);
  parts.add({0, 0}, "");
  CHECK_THAT(parts.error_of({0, 0}), Contains("t.0.json' cannot be written: Bad file descriptor"));
}

TEST_CASE("a part that another process is writing is left to it, and told") {
  const TemporaryDirectory directory;
  const std::string taken = directory.path() + "/t.0.json";
  const int writer = ringlet::native::open_alone(taken);
  REQUIRE(writer >= 0);
  REQUIRE(::write(writer, "theirs", 6) == 6);
  PartFiles parts(directory.path() + "/t.json");
  parts.add({0, 0}, "[\n{}\n");
  parts.add({1, 0}, "[\n{}\n");
  CHECK_THAT(parts.error_of({0, 0}), Contains("t.0.json' is being written by another process"));
  CHECK(parts.processes() == std::vector<RankProcess>{{1, 0}});
  std::ifstream file(taken);
  std::string text;
  std::getline(file, text);
  CHECK(text == "theirs");
  ::close(writer);
}
