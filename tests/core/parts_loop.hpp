#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "core/engine/parts_switch.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/probes_setup.hpp"

namespace ringlet::test {

using PartsSpeeds = std::vector<std::uint32_t>;

/// What each operation has given on each rank, by group (Membership::key), stream and number.
using PartsResults = std::map<std::tuple<std::uint64_t, std::uint16_t, int>, std::vector<std::uint64_t>>;

/// Averages f16 and sums f32, whose bits depend on the order of additions, on one stream of a group on one rank: several at a time, of all
/// sizes, until one fails.
class PartsLoop {
 public:
  PartsLoop(GroupEngine& engine, std::uint16_t stream, int rounds, PartsResults& results)
      : engine_(engine), stream_(stream), rounds_(rounds), results_(results) {
    for (int i = 0; i < 3; ++i) next();
  }
  PartsLoop(const PartsLoop&) = delete;
  /// All that has begun has ended, and nothing more will begin.
  bool done() const { return ended_ == started_ && (started_ == rounds_ || !failure_.ok()); }
  const Status& failure() const { return failure_; }

 private:
  void next() {
    if (started_ == rounds_ || !failure_.ok()) return;
    const int number = started_++;
    // The same on all ranks.
    SimRandom shape(static_cast<std::uint64_t>(number) * 64 + stream_);
    const bool is_mean = shape.below(2) == 0;
    const std::size_t count = shape.below(6) == 0 ? shape.below(40) : shape.below(9000);
    const WorldOptions& options = engine_.options();
    SimRandom random(static_cast<std::uint64_t>(number * 100 + options.rank) * 64 + stream_);
    auto& values = buffers_.emplace_back(count * 4);
    const TensorView view(values.data(), is_mean ? DType::f16 : DType::f32, count * (is_mean ? 2 : 1));
    fill(random, values, is_mean);
    auto task = is_mean ? make_all_mean(view, view, options) : make_all_reduce(ReduceOp::sum, view, view, 1, options);
    task.value().timeout = Duration::seconds(30);
    task.value().completion = [this, number, &values](const Status& status) { on_done(number, values, status); };
    engine_.start(stream_, std::move(task).value());
  }
  static void fill(SimRandom& random, std::vector<std::byte>& values, bool is_half) {
    for (std::size_t at = 0; at < values.size(); at += is_half ? 2 : 4) {
      const float wide = 1 + static_cast<float>(random.below(1 << 20)) / (1 << 20);
      const auto half = static_cast<std::uint16_t>(0x7800 + random.below(0x300));  // near the largest f16, so that sums would overflow
      std::memcpy(values.data() + at, is_half ? static_cast<const void*>(&half) : &wide, is_half ? 2 : 4);
    }
  }
  void on_done(int number, std::vector<std::byte>& values, const Status& status) {
    ++ended_;
    if (status.ok())
      results_[{engine_.members().key(), stream_, number}].push_back(
          hash_of({reinterpret_cast<const char*>(values.data()), values.size()}));
    else
      failure_ = status;
    values = {};
    next();
  }

  GroupEngine& engine_;
  const std::uint16_t stream_;
  const int rounds_;
  PartsResults& results_;
  std::deque<std::vector<std::byte>> buffers_;
  int started_ = 0, ended_ = 0;
  Status failure_;
};

inline bool all_done(const std::deque<PartsLoop>& loops) {
  return std::all_of(loops.begin(), loops.end(), [](const PartsLoop& loop) { return loop.done(); });
}

/// Runs so many operations in the group of all ranks, which all end well.
inline void run_rounds(SimGroup& group, int rounds) {
  PartsResults results;
  std::deque<PartsLoop> loops;
  for (int rank = 0; rank < group.size(); ++rank) loops.emplace_back(group.world(rank).group(), 0, rounds, results);
  REQUIRE(group.sim().run_until([&] { return all_done(loops); }, {.time = Duration::seconds(20)}) == RunEnd::done);
  for (const PartsLoop& loop : loops) CHECK(loop.failure().ok());
}

inline GroupSetup parts_setup(int natives, int guests, std::uint64_t seed) {
  GroupSetup setup = probes_setup(natives, guests);
  setup.seed = seed;
  setup.world.placement.parts = PartsPolicy::measured;
  setup.world.limits = {300, 5000};
  setup.world.leaf_limits = {1000, 0, 3000, 16};
  return setup;
}

inline PartsSpeeds random_speeds(SimRandom& random, int natives, int guests) {
  PartsSpeeds speeds;
  for (int rank = 0; rank < natives; ++rank)
    speeds.push_back(random.below(2) == 0 ? kFullSpeed : static_cast<std::uint32_t>(1 + random.below(kFullSpeed)));
  speeds.resize(static_cast<std::size_t>(natives + guests), kFullSpeed);
  return speeds;
}

/// What a rank says of the speeds in a group once it has taken `wanted`, which are those of its members: if all natives are equally fast,
/// or there are only two ranks, nobody is slow.
inline PartsSpeeds taken(const PartsSpeeds& wanted, int guests) {
  Topology topology = Topology::of_world(static_cast<int>(wanted.size()), guests);
  topology.set_speeds(wanted);
  PartsSpeeds speeds;
  for (int rank = 0; rank < static_cast<int>(wanted.size()); ++rank) speeds.push_back(topology.speed(rank));
  return speeds;
}

}  // namespace ringlet::test
