#include "native/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/temporary_directory.hpp"

using namespace ringlet;
using namespace ringlet::native;
using Catch::Matchers::Contains;

namespace {

std::string refusal(const std::string& path, const InputLimits& limits = {}) {
  const auto text = read_input_file(path, limits);
  REQUIRE_FALSE(text.ok());
  return text.status().text();
}

}  // namespace

TEST_CASE("a file that a person has named is read to its end, up to a limit") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  std::ofstream(path) << "alpha\nbeta\n";
  CHECK(read_input_file(path).value() == "alpha\nbeta\n");
  CHECK(read_input_file(path, {.most_bytes = 11}).value() == "alpha\nbeta\n");
  CHECK_THAT(refusal(path, {.most_bytes = 10}), Contains("longer than 10 bytes"));
  CHECK(read_input_file("/dev/null").value().empty());
}

TEST_CASE("what is no file, or has no end, is refused with the reason") {
  const test::TemporaryDirectory directory;
  CHECK(refusal(directory.path() + "/none") == "No such file or directory");
  CHECK(refusal(directory.path()) == "Is a directory");
  CHECK_THAT(refusal("/dev/zero"), Contains("longer than"));
}

TEST_CASE("a pipe is read to its end, and not waited for without one") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  REQUIRE(::write(ends[1], "alpha\n", 6) == 6);
  CHECK_THAT(refusal(path, {.longest_silence = std::chrono::milliseconds(1)}), Contains("nothing came"));
  REQUIRE(::write(ends[1], "beta\n", 5) == 5);
  ::close(ends[1]);
  CHECK(read_input_file(path).value() == "beta\n");
  ::close(ends[0]);
}

TEST_CASE("a named pipe waits for its writer, and not without an end") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/fifo";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THAT(refusal(path, {.longest_silence = std::chrono::milliseconds(1)}), Contains("nothing came"));
  int asked = 0;
  const auto stopped = read_input_file(path, {.interrupted = [&] { return ++asked == 2; }});
  CHECK(stopped.status().code() == Errc::cancelled);
  // The writer's opening waits for the reader's.
  std::thread writer([&] { std::ofstream(path) << "alpha\n"; });
  CHECK(read_input_file(path).value() == "alpha\n");
  writer.join();
}
