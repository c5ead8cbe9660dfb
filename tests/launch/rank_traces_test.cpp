#include "tools/launch/rank_traces.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/temporary_directory.hpp"

using namespace ringlet;
using launch::RankTraces;

namespace {

void write_all(int descriptor, const std::string& text) {
  REQUIRE(::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("a process' trace is sent when it is gone, a piece at a time, and then the next one's") {
  std::vector<job::TracePiece> pieces;
  RankTraces traces([&](job::TracePiece piece) { pieces.push_back(std::move(piece)); });
  const int first = traces.open(2, 0), second = traces.open(2, 1), silent = traces.open(3, 0);
  REQUIRE((first >= 0 && second >= 0 && silent >= 0));
  const std::string text(job::kMaxTracePieceBytes + 5, 'x');
  write_all(first, text);
  write_all(second, "again");
  CHECK(traces.idle());
  CHECK(pieces.empty());
  traces.send(2, 0);
  traces.send(3, 0);
  traces.send(2, 1);
  traces.send(2, 1);  // it has been told already
  traces.send(7, 0);  // it has no file
  const std::vector<job::TracePiece> expected{
      {2, 0, std::string(job::kMaxTracePieceBytes, 'x')}, {2, 0, "xxxxx"}, {2, 0, ""}, {3, 0, ""}, {2, 1, "again"}, {2, 1, ""}};
  for (std::size_t count = 1; count <= expected.size(); ++count) {
    REQUIRE(pieces.size() == count);
    CHECK(pieces.back() == expected[count - 1]);
    CHECK_FALSE(traces.idle());
    traces.take();
  }
  CHECK(pieces.size() == expected.size());
  CHECK(traces.idle());
}

TEST_CASE("traces that nobody takes are forgotten, and later ones, too") {
  int pieces = 0;
  RankTraces traces([&](const job::TracePiece&) { ++pieces; });
  write_all(traces.open(0, 0), "x");
  write_all(traces.open(1, 0), "x");
  traces.send(0, 0);
  traces.drop();
  CHECK(traces.idle());
  traces.send(1, 0);
  traces.take();
  CHECK(traces.idle());
  CHECK(pieces == 1);
}

TEST_CASE("where no file can be made, the system's reason is left in errno") {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  RankTraces traces([](const job::TracePiece&) {});
  ::setenv("TMPDIR", "/no/such/folder", 1);
  CHECK(traces.open(0, 0) == -1);
  CHECK(errno != 0);
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  traces.send(0, 0);
  CHECK(traces.idle());
}
