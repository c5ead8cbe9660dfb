#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/transport/flood.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

constexpr char kToken[] = "a-token-that-only-the-tests-have";

}  // namespace

TEST_CASE("ranks meet through ten thousand bad connections") {
  std::atomic<bool> flooded{false};
  const int connections = static_cast<int>(share_of(10'000));
  Campaign campaign("strangers' connections while ranks meet");
  campaign.begin(connections);
  run_ranks(
      3,
      [&](Group& world) {
        for (int step = 1; step <= 20; ++step) {
          std::vector<float> values(5000, static_cast<float>(step * (world.rank() + 1)));
          world.all_sum(values);
          expect(values.front() == static_cast<float>(step * 6) && values.back() == values.front(), "a wrong sum");
        }
      },
      [&](native::WorldConfig& config) {
        config.token = kToken;
        // Rank 0 listens at that port from the start, and rank 2 gets in between the bad connections.
        if (config.options.rank == 1) flooded = flood(config.meeting.coordinator->port, connections);
      });
  CHECK(flooded);
  if (flooded) campaign.goes_well(connections);
}
