#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <vector>

#include "core/ports/trace.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// A rank's trace, whose clock began `offset` earlier than the simulation's and runs faster by `parts_per_million`.
class DriftingTrace final : public Trace {
 public:
  DriftingTrace(EventLoop& loop, Duration offset, int parts_per_million) : loop_(loop), offset_(offset), drift_(parts_per_million) {}

  Instant now() const override { return at(loop_.now()); }
  std::uint32_t add_track(const std::string&) override { return 1; }
  void record(const TraceRecord&) override {}
  void record(const ClockReading& reading) override { readings.push_back(reading); }

  /// What this clock shows at a moment of the simulation, and when it shows what.
  ///@{
  Instant at(Instant moment) const { return moment + offset_ + Duration{moment.nanoseconds / 1'000'000 * drift_}; }
  double moment_of(Instant shown) const {
    return static_cast<double>((shown - Instant{} + offset_ * -1).nanoseconds) / (1 + drift_ * 1e-6);
  }
  ///@}

  std::vector<ClockReading> readings;

 private:
  EventLoop& loop_;
  const Duration offset_;
  const int drift_;
};

struct ClockedRanks {
  ClockedRanks(std::uint64_t seed, int size, bool rank_0_has_trace = true) : random(seed), sim(setup_of(seed, size)) {
    for (int rank = 0; rank < size; ++rank) {
      // Machines are up for a second or for years.
      const Duration offset = Duration::seconds(1) * static_cast<std::int64_t>(1 + random.below(100'000'000));
      traces.emplace_back(sim.node(rank).loop(), offset, static_cast<int>(random.below(401)) - 200);
      WorldOptions options = setup_of(seed, size).world;
      if (rank > 0 || rank_0_has_trace) options.session.trace = &traces.back();
      sim.make_world(rank, options);
    }
    sim.meet();
  }
  static GroupSetup setup_of(std::uint64_t seed, int size) {
    GroupSetup setup;
    setup.size = size;
    setup.seed = seed;
    setup.paths = rough_paths();
    setup.world.heartbeat_timeout = Duration::seconds(600);
    return setup;
  }
  /// Collectives, one after the other, so that questions meet other bytes.
  void sum(std::size_t count) {
    for (int rank = 0; rank < sim.size(); ++rank) {
      auto& own = values.emplace_back(count, 1.0F);
      sim.start(rank, 0, make_all_reduce(ReduceOp::sum, own, own, 1, sim.options(rank)));
    }
    REQUIRE(sim.run_until_done());
  }

  SimRandom random;
  SimGroup sim;
  std::deque<DriftingTrace> traces;
  std::deque<std::vector<float>> values;
};

}  // namespace

TEST_CASE("every rank learns what rank 0's clock shows, within the error that it states") {
  for (const std::uint64_t seed : seeds(60)) {
    CAPTURE(seed);
    const int size = 2 + static_cast<int>(seed % 4);
    ClockedRanks ranks(seed, size);
    for (int round = 0; round < 6; ++round) {
      if (seed % 2 == 0) ranks.sum(200'000);
      ranks.sim.sim().run_for(Duration::seconds(2));
    }
    CHECK(ranks.traces[0].readings.empty());
    for (int rank = 1; rank < size; ++rank) {
      CAPTURE(rank);
      const DriftingTrace& own = ranks.traces[static_cast<std::size_t>(rank)];
      CHECK(own.readings.size() >= 5);
      for (const ClockReading& reading : own.readings) {
        const auto moment = static_cast<std::int64_t>(std::llround(own.moment_of(reading.at)));
        const double off = static_cast<double>((ranks.traces[0].at({moment}) - (reading.at + reading.offset)).nanoseconds);
        // What the clocks drift apart during the exchange, and the rounding of this test, come in addition.
        CHECK(std::abs(off) <= static_cast<double>(reading.error.nanoseconds) * 1.001 + 1000);
        CHECK(reading.error.nanoseconds > 0);
        CHECK(reading.epoch == 0);
      }
    }
    ranks.sim.close_cleanly();
  }
}

TEST_CASE("where traffic never pauses, clocks are compared all the same") {
  ClockedRanks ranks(7, 3);
  while (ranks.sim.node(0).loop().now() < Instant{} + Duration::seconds(8)) ranks.sum(2'000'000);
  for (std::size_t rank = 1; rank < 3; ++rank) CHECK(ranks.traces[rank].readings.size() >= 2);
}

TEST_CASE("rank 0 answers for its clock although it keeps no trace, and nobody without a trace asks") {
  ClockedRanks ranks(3, 3, false);
  ranks.sim.sim().run_for(Duration::seconds(4));
  CHECK(ranks.traces[0].readings.empty());
  for (std::size_t rank = 1; rank < 3; ++rank) {
    const DriftingTrace& own = ranks.traces[rank];
    REQUIRE_FALSE(own.readings.empty());
    for (const ClockReading& reading : own.readings) {
      // The clock of a rank without a trace is its loop's, here the simulation's.
      const double off = own.moment_of(reading.at) - static_cast<double>((reading.at + reading.offset).nanoseconds);
      CHECK(std::abs(off) <= static_cast<double>(reading.error.nanoseconds) * 1.001 + 1000);
    }
  }
}
