#include "native/loop_driver.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "tests/pass.hpp"

using namespace ringlet;
using namespace std::chrono_literals;

TEST_CASE("the loop's other work goes on beside a caller whose calls need no waiting and never pause for long") {
  native::LoopDriver driver(/*helper=*/true);
  constexpr int kTurns = 100;
  int turns = 0;
  std::function<void()> converse = [&] {
    if (++turns < kTurns) driver.loop().after(Duration::milliseconds(1), converse);
  };
  driver.run([&] { converse(); });
  int seen = 0;
  // Now and then the caller loses its core for long enough that the helper gets a turn.
  for (int call = 0; call < 3000 && seen < kTurns; ++call) {
    driver.run([&] { seen = turns; });
    test::pass(1ms);
  }
  CHECK(seen == kTurns);
}

TEST_CASE("what a caller has started to wait for next goes on, whether or not the caller waits") {
  native::LoopDriver driver(/*helper=*/true);
  for (const bool waits : {true, false, true}) {
    CAPTURE(waits);
    native::DoneFlag done;
    const auto end = [&] {
      driver.background_done();
      driver.set(done);
    };
    driver.run_in_background([&] { driver.loop().after(Duration::milliseconds(1), end); }, native::LoopDriver::Next::caller);
    if (waits) driver.wait(done, std::nullopt);
    for (int pause = 0; pause < 3000 && !done.is_set(); ++pause) test::pass(10ms);
    REQUIRE(done.is_set());
  }
}
