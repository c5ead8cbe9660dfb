// Tests of ranks with several addresses, some of which are slow, dead, refused, or those of another machine.
#include <catch2/catch.hpp>

#include "sim/sim_random.hpp"
#include "tests/core/raw_peer.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

constexpr char kBridge[] = "172.17.0.1";

PathOptions way(std::int64_t latency_us, std::uint64_t bytes_per_second) {
  PathOptions options = PathOptions::calm();
  options.latency = {Duration::microseconds(latency_us), Duration::microseconds(latency_us + latency_us / 5)};
  options.bytes_per_second = {bytes_per_second, bytes_per_second};
  return options;
}

const PathOptions kFast = way(100, 120'000'000), kSlow = way(100, 1'000'000);

std::string second_host(int rank) { return "10.1.0." + std::to_string(rank + 1); }

/// Ranks with a second address, 10.1.0.x, beside their first, 10.0.0.x. The coordinator is named by its first address.
class TwoNetworks {
 public:
  TwoNetworks(int size, std::uint64_t seed, const PathOptions& first, const PathOptions& second, bool with_roster = false)
      : group_(setup_of(size, seed, first, with_roster)) {
    for (int rank = 0; rank < size; ++rank) {
      group_.sim().add_address(group_.node(rank), second_host(rank)) = second;
      MeetingOptions& options = group_.meeting_options(rank);
      offer(rank, group_.node(rank).host());
      offer(rank, second_host(rank));
      if (with_roster)
        for (int peer = 0; peer < size; ++peer) options.roster[static_cast<std::size_t>(peer)].push_back({second_host(peer), 5000});
      else if (rank == 0)
        options.also_at = {second_host(0)};
    }
  }

  SimGroup& group() { return group_; }
  void offer(int rank, const std::string& host, std::uint32_t port = 0) { group_.meeting_options(rank).endpoints.push_back({host, port}); }

  /// Starts all ranks and requires that they meet within this virtual time.
  void meet(Duration within) {
    for (int rank = 0; rank < group_.size(); ++rank) group_.start_meeting(rank);
    const auto done = [&] {
      for (int rank = 0; rank < group_.size(); ++rank)
        if (!group_.met(rank)) return false;
      return true;
    };
    REQUIRE(group_.sim().run_until(done, {.time = within}) == RunEnd::done);
    for (int rank = 0; rank < group_.size(); ++rank) {
      INFO("rank " << rank << ": " << group_.met(rank)->text());
      REQUIRE(group_.met(rank)->ok());
    }
  }

  /// Requires that both ranks of each pair use the two ends of one link.
  void check_pairs() {
    for (int one = 0; one < group_.size(); ++one)
      for (int other = 0; other < one; ++other) {
        const LinkReport here = group_.world(one).link_with(other), there = group_.world(other).link_with(one);
        CAPTURE(one, other);
        CHECK(here.peer_name == there.own_name);
        CHECK(here.own_name == there.peer_name);
        CHECK(here.path == there.path);
        CHECK(here.dialled);
        CHECK_FALSE(there.dialled);
      }
  }

  /// Returns the network that carries the links of all pairs: 0, 1, or -1 where they differ.
  int network() {
    int found = -2;
    for (int one = 1; one < group_.size(); ++one)
      for (int other = 0; other < one; ++other) {
        const int taken = group_.world(one).link_with(other).peer_name.starts_with("10.1.") ? 1 : 0;
        found = found == -2 || found == taken ? taken : -1;
      }
    return found;
  }

 private:
  static GroupSetup setup_of(int size, std::uint64_t seed, const PathOptions& paths, bool with_roster) {
    GroupSetup setup;
    setup.size = size;
    setup.seed = seed;
    setup.paths = paths;
    setup.with_roster = with_roster;
    return setup;
  }

  SimGroup group_;
};

}  // namespace

TEST_CASE("every pair takes the fast network, whichever the coordinator is named by, and both ends say so") {
  const bool with_roster = GENERATE(false, true);
  for (const auto seed : seeds(20)) {
    CAPTURE(seed, with_roster);
    const bool second_is_fast = seed % 2 == 0;
    TwoNetworks net(static_cast<int>(2 + seed % 4), seed, second_is_fast ? kSlow : kFast, second_is_fast ? kFast : kSlow, with_roster);
    net.meet(Duration::seconds(3));
    net.check_pairs();
    CHECK(net.network() == (second_is_fast ? 1 : 0));
    const LinkReport link = net.group().world(1).link_with(0);
    CHECK(link.path.tried == 2);
    CHECK(link.path.round_trip_ns > 0);
    CHECK(link.path.byte_ps > 0);
    net.group().close_cleanly();
  }
}

TEST_CASE("an address that nobody answers at delays the meeting by its bound alone, and what is refused not at all") {
  const bool refused = GENERATE(false, true);
  PathOptions dead = kFast;
  (refused ? dead.dial_refused_per_mille : dead.dial_hangs_per_mille) = 1000;
  TwoNetworks net(4, 1, kFast, dead);
  net.meet(refused ? Duration::milliseconds(100) : Duration::milliseconds(700));
  net.check_pairs();
  CHECK(net.network() == 0);
  CHECK(net.group().world(1).link_with(0).path.byte_ps == 0);
  net.group().close_cleanly();
}

TEST_CASE("an address that connects and then says nothing is not waited for") {
  TwoNetworks net(3, 1, kFast, kSlow);
  SimNode& silent = net.group().sim().add_node();
  std::vector<std::unique_ptr<Link>> links;
  const auto listener = silent.network().listen({"0.0.0.0", 6000}, [&](std::unique_ptr<Link> link) { links.push_back(std::move(link)); });
  for (int rank = 0; rank < 3; ++rank) net.offer(rank, silent.host(), 6000);
  net.meet(Duration::seconds(2));
  net.check_pairs();
  CHECK(net.network() == 0);
  CHECK_FALSE(links.empty());
  net.group().close_cleanly();
}

TEST_CASE("an address that two machines have never links a rank with itself or with the wrong one") {
  TwoNetworks net(4, 1, kSlow, kSlow);
  for (int rank = 0; rank < 4; ++rank) {
    // All ranks listen at port 5001 and above there, so that most dials of this address end at some rank of this world.
    net.group().sim().add_address(net.group().node(rank), kBridge) = kFast;
    net.offer(rank, kBridge, 40'001);
    net.offer(rank, "127.0.0.1", 40'001);
  }
  net.meet(Duration::seconds(4));
  net.check_pairs();
  for (int one = 0; one < 4; ++one)
    for (int other = 0; other < 4; ++other)
      if (one != other) CHECK_THAT(net.group().world(one).link_with(other).peer_name, !Contains(kBridge) && !Contains("127.0.0.1"));
  net.group().close_cleanly();
}

TEST_CASE("another world with the same token at an address is passed over") {
  TwoNetworks net(3, 1, kFast, kSlow);
  SimNode& other = net.group().sim().add_node();
  TestAuthenticator authenticator(5, kSimToken);
  IncomingLinks incoming(other.loop(), authenticator);
  WorldOptions options;
  options.size = 3;
  options.kernels = simd::find("");
  World world(other.loop(), options);
  MeetingOptions meeting;
  meeting.coordinator = {other.host(), 5000};
  meeting.world_id = 1234;
  Meeting theirs(other.loop(), other.network(), authenticator, &incoming, world, meeting);
  std::optional<Status> ended;
  theirs.start([&](const Status& status) { ended = status; });
  for (int rank = 0; rank < 3; ++rank) net.offer(rank, other.host(), 5000);
  net.meet(Duration::seconds(2));
  net.check_pairs();
  CHECK_FALSE(ended);
  CHECK(world.failure().ok());
  net.group().close_cleanly();
}

TEST_CASE("candidates that are slow, hang, are refused or break at any byte: the ranks meet on links that both ends have") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const auto draw = [&] {
      PathOptions options = random.chance(500) ? kFast : rough_paths();
      if (random.chance(300)) options.bytes_per_second = {200'000, 2'000'000};
      if (random.chance(300)) options.dial_hangs_per_mille = 300;
      if (random.chance(300)) options.dial_refused_per_mille = 500;
      return options;
    };
    PathOptions second = draw();
    // Links break only until the meeting is over, since whatever breaks later is a lost rank.
    if (random.chance(400)) second.reset_at_byte = {1, 40'000};
    TwoNetworks net(static_cast<int>(2 + random.below(4)), seed, draw(), second, random.chance(300));
    if (!second.reset_at_byte) {
      net.meet(Duration::seconds(60));
      net.check_pairs();
      net.group().close_cleanly();
      continue;
    }
    SimGroup& group = net.group();
    for (int rank = 0; rank < group.size(); ++rank) group.start_meeting(rank);
    const auto all_ended = [&] {
      for (int rank = 0; rank < group.size(); ++rank)
        if (!group.met(rank)) return false;
      return true;
    };
    // If a chosen link breaks before the end, that is a lost rank for all. A link that breaks before it is chosen does no harm.
    REQUIRE(group.sim().run_until(all_ended, {.time = Duration::seconds(70)}) == RunEnd::done);
    bool whole = true;
    for (int rank = 0; rank < group.size(); ++rank) whole = whole && group.met(rank)->ok() && group.world(rank).failure().ok();
    if (whole) net.check_pairs();
  }
}

TEST_CASE("a candidate that dies when it was chosen makes place for the next") {
  // In each round the link of the fast network breaks at another byte of what the dialler is sent, also after everything that is measured.
  for (std::uint64_t byte = 150; byte < 290'000; byte += byte < 2000 ? 90 : 7001) {
    CAPTURE(byte);
    PathOptions fast = kFast;
    fast.reset_at_byte = {byte, byte};
    TwoNetworks net(2, byte, kSlow, fast);
    for (int rank = 0; rank < 2; ++rank) net.group().start_meeting(rank);
    REQUIRE(net.group().sim().run_until([&] { return net.group().met(0) && net.group().met(1); }, {.time = Duration::seconds(30)}) ==
            RunEnd::done);
    if (net.group().met(0)->ok() && net.group().met(1)->ok() && net.group().world(0).failure().ok() && net.group().world(1).failure().ok())
      net.check_pairs();
    else
      CHECK(byte > 260'000);
  }
}
