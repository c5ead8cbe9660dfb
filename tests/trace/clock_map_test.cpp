#include "tools/trace/clock_map.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet::trace;

namespace {

/// A clock that was at `offset` when the true time was 0, and runs faster by `drift`.
struct Clock {
  double offset, drift;
  std::int64_t at(double time) const { return std::llround(offset + time * (1 + drift)); }
};

constexpr double kSecond = 1e9;

/// What `own` learns of `other` each second, wrong by up to `error_ns`.
void compare(PartClock& part, std::uint32_t epoch, const Clock& own, const Clock& other, double from, double to, std::int64_t error_ns,
             ringlet::SimRandom& random) {
  for (double time = from; time <= to; time += kSecond) {
    const auto wrong = static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(error_ns) + 1)) - error_ns;
    part.compared.push_back({epoch, {own.at(time), other.at(time) - own.at(time) + wrong, error_ns}});
  }
}

}  // namespace

TEST_CASE("clocks that drift are mapped within the stated error, also through a rank that took rank 0's place") {
  for (const std::uint64_t seed : ringlet::test::seeds(100)) {
    CAPTURE(seed);
    ringlet::SimRandom random(seed);
    const auto clock = [&] {
      return Clock{static_cast<double>(random.below(1'000'000'000)) * 1e6, (static_cast<double>(random.below(401)) - 200) * 1e-6};
    };
    const Clock zero = clock(), one = clock(), joiner = clock();
    const auto error = static_cast<std::int64_t>(1 + random.below(100'000));
    // Rank 0 is lost after 10 s. Rank 1 takes its place in epoch 1, which a third process joins, that never met rank 0.
    std::vector<PartClock> parts(3);
    parts[0] = {"boot a", {{"l0", 0, 0}}, {}};
    parts[1] = {"boot b", {{"l0", 0, 1}, {"l1", 1, 0}}, {}};
    parts[2] = {"boot c", {{"l1", 1, 1}}, {}};
    compare(parts[1], 0, one, zero, 0, 10 * kSecond, error, random);
    compare(parts[2], 1, joiner, one, 5 * kSecond, 10 * kSecond, error, random);
    const auto maps = map_clocks(parts);
    REQUIRE((maps[0] && maps[1] && maps[2]));
    CHECK(maps[0]->error_ns() == 0);
    CHECK(maps[1]->error_ns() == error);
    CHECK(maps[2]->error_ns() == 2 * error);
    for (double time = 5 * kSecond; time <= 10 * kSecond; time += kSecond / 7) {
      CHECK(maps[0]->to_common(zero.at(time)) == zero.at(time));
      CHECK(std::abs(maps[1]->to_common(one.at(time)) - zero.at(time)) <= error + 3);
      CHECK(std::abs(maps[2]->to_common(joiner.at(time)) - zero.at(time)) <= 2 * error + 2000);  // the drift of what was off
    }
    // Readings at both ends hold beyond them.
    CHECK(std::abs(maps[1]->to_common(one.at(11 * kSecond)) - zero.at(11 * kSecond)) <= error + 400'003);
  }
}

TEST_CASE("processes of one clock need no reading, and those that nothing leads to are not mapped") {
  std::vector<PartClock> parts(4);
  parts[0] = {"boot a", {{"l0", 0, 0}}, {}};
  parts[1] = {"boot a", {{"l0", 0, 1}}, {}};
  // A reading of another group's rank 0, and one of an unknown clock.
  parts[2] = {"boot b", {{"other", 0, 1}}, {{0, {100, 5, 1}}}};
  parts[3] = {"", {{"l0", 0, 2}}, {}};
  const auto maps = map_clocks(parts);
  REQUIRE(maps[1].has_value());
  CHECK(maps[1]->to_common(12345) == 12345);
  CHECK(maps[1]->error_ns() == 0);
  CHECK_FALSE(maps[2].has_value());
  CHECK_FALSE(maps[3].has_value());
  CHECK(map_clocks({}).empty());
}

TEST_CASE("a clock is mapped from the other side where rank 0's own file comes later") {
  // Part 0 was rank 1, part 1 was rank 0: the reading is read backwards.
  std::vector<PartClock> parts(2);
  parts[0] = {"boot b", {{"l0", 0, 1}}, {{0, {1000, 500, 7}}}};
  parts[1] = {"boot a", {{"l0", 0, 0}}, {}};
  const auto maps = map_clocks(parts);
  REQUIRE(maps[1].has_value());
  CHECK(maps[1]->to_common(1500) == 1000);
  CHECK(maps[1]->error_ns() == 7);
}

TEST_CASE("ranks are mapped to each other through a rank 0 that left no trace") {
  std::vector<PartClock> parts(2);
  parts[0] = {"boot b", {{"l0", 0, 1}}, {{0, {1000, 500, 7}}}};
  parts[1] = {"boot c", {{"l0", 0, 2}}, {{0, {4000, -2500, 5}}}};
  const auto maps = map_clocks(parts);
  REQUIRE(maps.size() == 2);
  REQUIRE(maps[1].has_value());
  // Rank 0's clock showed 1500, where this one showed 4000 and rank 1's 1000.
  CHECK(maps[1]->to_common(4000) == 1000);
  CHECK(maps[1]->error_ns() == 12);
}

TEST_CASE("what was read of two clocks counts more than that they have one name") {
  std::vector<PartClock> parts(3);
  parts[0] = {"boot a", {{"l0", 0, 0}}, {}};
  // Alike within the error of the reading; and one that cannot be the same.
  parts[1] = {"boot a", {{"l0", 0, 1}}, {{0, {100, -7, 7}}}};
  parts[2] = {"boot a", {{"l0", 0, 2}}, {{0, {100, 8, 7}}}};
  const auto maps = map_clocks(parts);
  REQUIRE((maps[1] && maps[2]));
  CHECK(maps[1]->to_common(1000) == 1000);
  CHECK(maps[1]->error_ns() == 0);
  CHECK(maps[2]->to_common(1000) == 1008);
  CHECK(maps[2]->error_ns() == 7);
}

TEST_CASE("the largest offsets of many clocks in a row stay within the range of times") {
  constexpr int kParts = 40;
  std::vector<PartClock> parts(kParts);
  for (std::uint32_t i = 0; i < kParts; ++i) {
    parts[i].clock = "boot " + std::to_string(i);
    parts[i].seats.push_back({"l" + std::to_string(i), i, 0});
    if (i == 0) continue;
    parts[i].seats.push_back({"l" + std::to_string(i - 1), i - 1, 1});
    parts[i].compared.push_back({i - 1, {0, kMaxTimeNs, kMaxTimeNs}});
  }
  const auto maps = map_clocks(parts);
  REQUIRE(maps.back());
  CHECK(maps.back()->to_common(kMaxTimeNs) == 2 * kMaxTimeNs);
  CHECK(maps.back()->error_ns() == 2 * kMaxTimeNs);
}
