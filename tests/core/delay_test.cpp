#include <algorithm>
#include <catch2/catch.hpp>

#include "core/engine/delay_text.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

constexpr Duration kLimit = Duration::seconds(2);

/// A group of ranks whose warnings of delays are kept.
struct Warned {
  explicit Warned(int size, std::uint64_t seed = 0, int guests = 0) : sim(setup_of(size, seed, guests)) {
    sim.meet();
    for (int rank = 0; rank < size; ++rank) {
      sim.world(rank).set_identity({"host" + std::to_string(rank), "program", 100U + static_cast<std::uint32_t>(rank)});
      sim.world(rank).set_delay_handler([this, rank](const Delay& delay) {
        CHECK(delay.rank == rank);
        (delay.over ? overs : warnings).push_back(delay);
        told_at.push_back(sim.node(rank).loop().now());
      });
    }
  }
  static GroupSetup setup_of(int size, std::uint64_t seed, int guests) {
    GroupSetup setup;
    setup.size = size;
    setup.seed = seed;
    setup.paths = rough_paths();
    setup.world.guests = guests;
    setup.world.warn_after = kLimit;
    setup.world.heartbeat_timeout = Duration::seconds(60);
    return setup;
  }
  void start_sum(GroupEngine& group, int rank, std::size_t count, std::uint16_t stream = 0) {
    auto& own = values.emplace_back(count, 1.0F);
    sim.start_in(group, rank, stream, make_all_reduce(ReduceOp::sum, own, own, 1, group.options()));
  }
  void run_for(Duration time) { sim.sim().run_for(time); }
  static std::vector<int> ranks_of(const Delay& delay) {
    std::vector<int> ranks;
    for (const Latecomer& late : delay.late) ranks.push_back(late.rank);
    return ranks;
  }

  SimGroup sim;
  std::deque<std::vector<float>> values;
  std::vector<Delay> warnings, overs;
  std::vector<Instant> told_at;
};

}  // namespace

TEST_CASE("warnings name exactly the ranks that have not arrived, in every group and by every algorithm") {
  for (const std::uint64_t seed : seeds(120)) {
    CAPTURE(seed);
    SimRandom random(seed);
    const int size = 2 + static_cast<int>(random.below(6));
    const int guests = random.below(3) == 0 ? static_cast<int>(random.below(static_cast<std::uint64_t>(size))) : 0;
    Warned ranks(size, seed, guests);
    const std::size_t counts[] = {1, 20'000, 200'000};
    const std::size_t count = counts[random.below(3)];
    const auto stream = static_cast<std::uint16_t>(random.below(2));
    // The group is a part of the world in another order, or all of it.
    auto groups = ranks.sim.groups();
    if (random.below(2) == 0) {
      std::vector<int> colors, keys;
      for (int rank = 0; rank < size; ++rank) {
        colors.push_back(rank < 2 ? 0 : static_cast<int>(random.below(2)));
        keys.push_back(static_cast<int>(random.below(10)));
      }
      groups = ranks.sim.split(groups, colors, keys);
      for (int rank = 0; rank < size; ++rank)
        if (colors[static_cast<std::size_t>(rank)] != 0) groups[static_cast<std::size_t>(rank)] = nullptr;
    }
    std::vector<int> members, late;
    for (int rank = 0; rank < size; ++rank)
      if (groups[static_cast<std::size_t>(rank)] != nullptr) members.push_back(rank);
    if (members.size() < 2) continue;
    CAPTURE(size, guests, count, stream, members);
    for (const int rank : members) ranks.start_sum(*groups[static_cast<std::size_t>(rank)], rank, 10, stream);
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
    REQUIRE(ranks.warnings.empty());

    for (const int rank : members)
      if (late.size() + 1 < members.size() && random.below(3) == 0) late.push_back(rank);
    if (late.empty()) late.push_back(members.back());
    const auto is_late = [&](int rank) { return std::find(late.begin(), late.end(), rank) != late.end(); };
    for (const int rank : members)
      if (!is_late(rank)) ranks.start_sum(*groups[static_cast<std::size_t>(rank)], rank, count, stream);
    const Instant started = ranks.sim.node(members.front()).loop().now();
    ranks.run_for(Duration::milliseconds(3100));
    REQUIRE(ranks.warnings.size() == members.size() - late.size());
    int speakers = 0;
    for (const Delay& delay : ranks.warnings) {
      INFO(delay.text);
      CHECK(Warned::ranks_of(delay) == late);
      CHECK_THAT(delay.operation, Contains("all_reduce(sum, f32 x " + std::to_string(count)) && Contains(" number "));
      for (const Latecomer& one : delay.late) {
        CHECK(one.host == "host" + std::to_string(one.rank));
        CHECK(one.answers);
        CHECK_THAT(one.doing, Contains("computes since its all_reduce(sum, f32 x 10, ") && Contains(" ended "));
      }
      speakers += delay.speaks;
    }
    CHECK(speakers == 1);
    for (const Instant told : ranks.told_at) CHECK(told - started < kLimit + Duration::seconds(1));
    for (const int rank : late) ranks.start_sum(*groups[static_cast<std::size_t>(rank)], rank, count, stream);
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
    ranks.run_for(Duration::milliseconds(100));
    CHECK(ranks.overs.size() == ranks.warnings.size());
    for (const Delay& delay : ranks.overs) CHECK_THAT(delay.text, Contains(" has gone on after "));
  }
}

TEST_CASE("without a delay nobody warns") {
  for (const std::uint64_t seed : seeds(30)) {
    CAPTURE(seed);
    Warned ranks(4, seed);
    for (int round = 0; round < 20; ++round)
      for (int rank = 0; rank < 4; ++rank)
        for (const std::uint16_t stream : {0, 1}) ranks.start_sum(ranks.sim.world(rank).group(), rank, 5000, stream);
    REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
    // Between operations ranks may take as long as they want.
    ranks.run_for(Duration::seconds(30));
    CHECK(ranks.warnings.empty());
    CHECK(ranks.overs.empty());
  }
}

TEST_CASE("a rank that is in an earlier operation is named with it, and so is the one that it waits for") {
  Warned ranks(4);
  const auto start = [&](int rank, std::size_t count) { ranks.start_sum(ranks.sim.world(rank).group(), rank, count); };
  std::vector<std::vector<float>> chain(4, std::vector<float>(200'000));
  const auto broadcast = [&](int rank) {
    ranks.sim.start(rank, 0, make_broadcast(chain[static_cast<std::size_t>(rank)], 0, ranks.sim.options(rank)));
  };
  // The chain ends at rank 3, which does not take part. Rank 2 cannot send its part on, but the ranks before it are done.
  for (const int rank : {0, 1, 2}) broadcast(rank);
  for (const int rank : {0, 1}) start(rank, 10);
  ranks.run_for(Duration::milliseconds(3100));
  const auto of_rank_0 = std::find_if(ranks.warnings.begin(), ranks.warnings.end(), [](const Delay& delay) { return delay.rank == 0; });
  REQUIRE(of_rank_0 != ranks.warnings.end());
  INFO(of_rank_0->text);
  CHECK(Warned::ranks_of(*of_rank_0) == std::vector<int>{2, 3});
  CHECK_THAT(of_rank_0->late[0].doing,
             Contains("is still in broadcast(f32 x 200000, root 0, ring) number 0") && Contains("waiting for rank 3"));
  CHECK_THAT(of_rank_0->late[1].doing, Contains("computes and has not called anything yet"));
  broadcast(3);
  for (const int rank : {2, 3}) start(rank, 10);
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
  ranks.sim.close_cleanly();
}

TEST_CASE("a rank that is in an operation of another stream is named with it") {
  Warned ranks(3);
  const auto start = [&](int rank, std::uint16_t stream) { ranks.start_sum(ranks.sim.world(rank).group(), rank, 1000, stream); };
  for (const int rank : {0, 1}) start(rank, 0);
  start(2, 7);
  ranks.run_for(Duration::milliseconds(3100));
  REQUIRE(ranks.warnings.size() == 3);
  for (const Delay& delay : ranks.warnings) {
    INFO(delay.text);
    if (delay.rank == 2) {
      CHECK(Warned::ranks_of(delay) == std::vector<int>{0, 1});
      CHECK_THAT(delay.text, Contains("number 0 of stream 7 has waited 2.") && Contains("which is in all_reduce(sum, f32 x 1000, "));
    } else {
      CHECK(Warned::ranks_of(delay) == std::vector<int>{2});
      CHECK_THAT(delay.late[0].doing, Contains("is in all_reduce(sum, f32 x 1000, ") && Contains("number 0 of stream 7"));
    }
  }
  for (const int rank : {0, 1}) start(rank, 7);
  start(2, 0);
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
  ranks.sim.close_cleanly();
}

TEST_CASE("both sides of a message warn") {
  Warned ranks(3);
  std::vector<float> sent(100'000), received(100'000);
  ranks.sim.send(0, 0, make_send(sent, 1, ranks.sim.options(0)));
  ranks.run_for(Duration::milliseconds(2900));
  REQUIRE(ranks.warnings.size() == 1);
  CHECK(ranks.warnings[0].rank == 0);
  CHECK(Warned::ranks_of(ranks.warnings[0]) == std::vector<int>{1});
  CHECK_THAT(ranks.warnings[0].text, Contains("send(f32 (100000,)) to rank 1 number 0 has waited 2."));
  ranks.sim.receive(1, 0, make_receive(received, 0, ranks.sim.options(1)));
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
  ranks.run_for(Duration::milliseconds(100));
  CHECK(ranks.overs.size() == 1);
  ranks.sim.receive(1, 0, make_receive(received, 2, ranks.sim.options(1)));
  ranks.run_for(Duration::milliseconds(2900));
  REQUIRE(ranks.warnings.size() == 2);
  CHECK(Warned::ranks_of(ranks.warnings[1]) == std::vector<int>{2});
  CHECK_THAT(ranks.warnings[1].text, Contains("recv(f32 (100000,)) from rank 2 number 0") && Contains("rank 2 (host2), which computes"));
}

TEST_CASE("a rank that stands still has not answered, within a second") {
  const bool has_called = GENERATE(false, true);
  Warned ranks(4);
  for (const int rank : {0, 1, 3}) ranks.start_sum(ranks.sim.world(rank).group(), rank, 100'000);
  if (has_called) ranks.start_sum(ranks.sim.world(2).group(), 2, 100'000);
  ranks.sim.sim().freeze(ranks.sim.node(2)).now();
  ranks.run_for(Duration::milliseconds(3000));
  REQUIRE(ranks.warnings.size() == 3);
  for (const Delay& delay : ranks.warnings) {
    INFO(delay.text);
    REQUIRE(Warned::ranks_of(delay) == std::vector<int>{2});
    CHECK_FALSE(delay.late[0].answers);
    CHECK_THAT(delay.late[0].doing, Contains("has not answered for "));
  }
}

TEST_CASE("warnings come ever more rarely, and ask every other member once each") {
  const int size = 8;
  Warned ranks(size);
  for (int rank = 1; rank < size; ++rank) ranks.start_sum(ranks.sim.world(rank).group(), rank, 1000);
  ranks.run_for(Duration::milliseconds(1900));
  const auto sent_by_all = [&] {
    std::uint64_t bytes = 0;
    for (int rank = 0; rank < size; ++rank) bytes += ranks.sim.world(rank).state().bytes_sent;
    return bytes;
  };
  const std::uint64_t quiet = sent_by_all();
  ranks.run_for(Duration::seconds(128));
  // The warnings come after 2, 4, 8, 16, 32, 64 and 128 s, plus the time that the answers take each time.
  const std::size_t rounds = ranks.warnings.size() / (size - 1);
  CHECK(rounds >= 5);
  CHECK(rounds <= 7);
  // Every rank asks and answers every other one, each time in less than 300 bytes, and sends heartbeats four times a minute.
  CHECK(sent_by_all() - quiet < 7 * size * (size - 1) * 300 + 12 * size * (size - 1) * 40);
  ranks.start_sum(ranks.sim.world(0).group(), 0, 1000);
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
  ranks.sim.close_cleanly();
  // The message that the delay is over comes, too, however soon the world is closed.
  CHECK(ranks.overs.size() == size - 1);
}

TEST_CASE("the last word comes also where the group is left at once") {
  Warned ranks(3);
  for (const int rank : {0, 1}) ranks.start_sum(ranks.sim.world(rank).group(), rank, 1000);
  ranks.run_for(Duration::milliseconds(3000));
  REQUIRE(ranks.warnings.size() == 2);
  ranks.start_sum(ranks.sim.world(2).group(), 2, 1000);
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(60)));
  for (const int rank : {0, 1, 2}) ranks.sim.world(rank).leave(ranks.sim.world(rank).group());
  CHECK(ranks.overs.size() == 2);
}

TEST_CASE("an operation that fails says so, and nothing about it afterwards") {
  Warned ranks(3);
  for (const int rank : {0, 1}) ranks.start_sum(ranks.sim.world(rank).group(), rank, 1000);
  ranks.run_for(Duration::milliseconds(3000));
  REQUIRE(ranks.warnings.size() == 2);
  ranks.sim.destroy(2);
  REQUIRE(ranks.sim.run_until_done(Duration::seconds(120)));
  ranks.run_for(Duration::seconds(30));
  CHECK(ranks.warnings.size() == 2);
  CHECK(ranks.overs.empty());
}

TEST_CASE("the words of warnings") {
  CHECK(progress_text(0, 0) == "0 of 0 bytes");
  CHECK(progress_text(40, 100) == "40 of 100 bytes");
  CHECK(progress_text(3 << 20, 8 << 20) == "3.0 of 8.0 MiB");
  Delay delay;
  delay.operation = "barrier number 3";
  delay.waited = std::chrono::milliseconds(10'040);
  CHECK(describe_delay(delay, "rank 1 has called it") ==
        "barrier number 3 has waited 10.0 s, though all ranks have called it; rank 1 has called it");
  for (int rank = 1; rank <= 10; ++rank) delay.late.push_back({rank, rank == 1 ? "attic" : "", true, "computes"});
  CHECK_THAT(describe_delay(delay, ""), Contains("for rank 1 (attic), which computes, for rank 2, which") && Contains(" and 2 more"));
  delay.speaks = false;
  CHECK(describe_delay(delay, "") == "barrier number 3 has waited 10.0 s for ranks 1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
  delay.over = true;
  CHECK(describe_delay(delay, "") == "barrier number 3 has gone on after 10.0 s");
}
