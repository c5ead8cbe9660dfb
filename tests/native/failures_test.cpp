#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/pass.hpp"

using namespace ringlet;
using test::expect;

namespace {

template <class ExpectedError>
ExpectedError catch_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const ExpectedError& error) {
    return error;
  } catch (const Error& error) {
    throw std::runtime_error(std::string("another error: ") + error.what());
  }
  throw std::runtime_error("no error");
}

bool contains(const Error& error, const std::string& part) { return std::string(error.what()).find(part) != std::string::npos; }

}  // namespace

// In this case MLX returns half-reduced numbers on one rank and hangs on the other.
TEST_CASE("ranks that disagree about the size both learn what each called") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(world.rank() == 0 ? 1000 : 2000, 1.0f);
    const auto error = catch_error<MismatchError>([&] { world.all_sum(values); });
    expect(contains(error, "rank 0 called all_reduce(sum, f32 x 1000") && contains(error, "rank 1 called all_reduce(sum, f32 x 2000"),
           error.what());
  });
  SUCCEED();
}

TEST_CASE("ranks that disagree about operation or dtype, one of four") {
  const int kind = GENERATE(0, 1, 2, 3);
  test::run_ranks(4, [&](Group& world) {
    std::vector<float> values(100, 1.0f);
    std::vector<std::int32_t> integers(100, 1);
    const auto error = catch_error<MismatchError>([&] {
      if (world.rank() != 2) return world.all_sum(values);
      if (kind == 0) return world.all_max(values);
      if (kind == 1) return world.all_sum(integers);
      if (kind == 2) return world.broadcast(values, 0);
      world.barrier();
    });
    expect(contains(error, "rank 2 called"), error.what());
    // The group has ended, so later calls say why at once.
    const auto later = catch_error<MismatchError>([&] { world.barrier(); });
    expect(contains(later, "rank 2 called"), later.what());
  });
  SUCCEED();
}

TEST_CASE("a message of another shape is an error on both sides, and the group lives on") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(world.rank() == 0 ? 10 : 12, 1.0f);
    const auto error = catch_error<MismatchError>([&] { world.rank() == 0 ? world.send(values, 1) : world.recv(values, 0); });
    expect(contains(error, "rank 0 sent f32 (10,)") && contains(error, "rank 1 receives f32 (12,)"), error.what());
    std::vector<float> sum{1};
    world.all_sum(sum);
    expect(sum[0] == 2, "the group lives on");
  });
  SUCCEED();
}

TEST_CASE("a rank that does not come is named when the time is over") {
  std::atomic<int> waiting{2};
  test::run_ranks(3, [&](Group& world) {
    if (world.rank() == 1) {
      while (waiting > 0) std::this_thread::yield();
      return;
    }
    std::vector<float> values{1};
    const auto error = catch_error<Timeout>([&] { world.all_sum(values, {.timeout = std::chrono::milliseconds(200)}); });
    --waiting;
    expect(error.status().rank() == 1 && contains(error, "rank 1 (has not called it)"), error.what());
  });
  SUCCEED();
}

TEST_CASE("the longest timeout that can be said is no short one") {
  test::run_ranks(2, [](Group& world) {
    constexpr auto kForEver = std::chrono::milliseconds::max();
    if (world.rank() == 1) test::pass(std::chrono::milliseconds(200));
    std::vector<float> values{1};
    world.all_sum(values, {.timeout = kForEver});
    if (world.rank() == 1) test::pass(std::chrono::milliseconds(200));
    Work work = world.all_reduce_async(ReduceOp::sum, values, values, {.timeout = kForEver});
    expect(work.wait_for(kForEver), "the operation has ended");
    expect(values[0] == 4, "the sum");
  });
  SUCCEED();
}

TEST_CASE("a rank that leaves early is named") {
  test::run_ranks(3, [](Group& world) {
    if (world.rank() == 2) {
      world = Group();
      return;
    }
    std::vector<float> values{1};
    const auto error = catch_error<PeerLost>([&] { world.all_sum(values); });
    expect(error.status().rank() == 2 && contains(error, "rank 2 left the group"), error.what());
  });
  SUCCEED();
}

TEST_CASE("a rank that gives up takes its pending operations with it") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values{1};
    if (world.rank() == 0) {
      const auto error = catch_error<Timeout>([&] { world.recv(values, 1, {.timeout = std::chrono::milliseconds(100)}); });
      expect(error.status().rank() == 1, error.what());
      return;
    }
    catch_error<Timeout>([&] { world.recv(values, 0); });  // rank 0 has told the others
  });
  SUCCEED();
}

TEST_CASE("worlds of different sizes do not meet, and say why") {
  std::atomic<int> told{0};
  try {
    test::run_ranks(
        2, [](Group&) {},
        [](native::WorldConfig& config) {
          config.meeting.timeout = Duration::seconds(5);
          if (config.options.rank == 1) config.options.size = 3;
        });
  } catch (const MismatchError& error) {
    ++told;
    CHECK(contains(error, "world of 3 ranks"));
  }
  CHECK(told == 1);
}

TEST_CASE("a missing rank is named when the meeting's time is over") {
  try {
    test::run_ranks(
        2, [](Group&) {},
        [](native::WorldConfig& config) {
          config.options.size = 3;
          config.meeting.timeout = Duration::milliseconds(300);
        });
    FAIL("met without rank 2");
  } catch (const Timeout& error) {
    CHECK(contains(error, "rank 2"));
  }
}
