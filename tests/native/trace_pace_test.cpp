#include <catch2/catch.hpp>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "native/trace/recorder.hpp"
#include "tests/temporary_directory.hpp"

using namespace ringlet;
using namespace ringlet::native;

TEST_CASE("a thread may record many buffers in the time of a pause") {
  const test::TemporaryDirectory directory;
  TraceRecord record;
  record.track = 1;
  record.name = "step";
  record.category = kProgramCategory;
  const auto drops = [&] {
    Recorder recorder({.file = directory.path() + "/t.json"});
    recorder.enter({.size = 2});
    for (int burst = 0; burst < 10; ++burst) {
      for (std::size_t i = 0; i < Recorder::kBufferEvents / 2; ++i) recorder.record(record);
      const Instant next = recorder.now() + Duration::milliseconds(4);
      while (recorder.now() < next) std::this_thread::yield();
    }
    recorder.finish();
    std::ifstream file(directory.path() + "/t.0.json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.find("\"dropped_by_threads\":0,") == std::string::npos;
  };
  // Where the machine has no processor for the writer, events are dropped.
  constexpr int kTries = 100;
  int tries = 1;
  while (tries < kTries && drops()) ++tries;
  CHECK(tries < kTries);
}
