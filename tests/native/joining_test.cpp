// Tests of elastic groups that take in ranks while they run.
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <ringlet/ringlet.hpp>

#include "tests/native/joiners.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

TEST_CASE("a process joins a group that runs") {
  Doors doors(2);
  Process joiner([&] {
    Group group = init(joiner_options(doors.of(0)));
    expect(group.rank() == 2 && group.size() == 3 && group.epoch() == 1, "the new rank");
    expect(group.shared().has_joined() && !group.door().empty(), "it has joined, and has a door of its own");
    expect(sum_of(group, 100) == 111, "the sum of three");
    std::vector<float> values(300'000, 4);
    group.all_sum(values);
    expect(values == std::vector<float>(300'000, 7), "a large sum");
    expect(group.agree(true), "the first call on all");
    group.barrier();
  });
  run_elastic(2, [&](Group& world) {
    doors.open(world);
    expect(sum_of(world, 1) == 2, "two");
    expect(!world.shared().has_joined(), "a member from the start");
    const std::string door = world.door();
    const Reformed next = grow_to(world, 3);
    Group group = next.world;
    expect(group.rank() == world.rank() && group.epoch() == 1 && next.lost.empty() && next.lineage == 0, "the same rank");
    expect(next.before == std::vector<int>{0, 1, -1}, "who was there before");
    expect(group.door() == door, "the door stays");
    expect(sum_of(group, group.rank() == 0 ? 1 : 10) == 111, "the sum of three");
    std::vector<float> values(300'000, static_cast<float>(group.rank() + 1));
    group.all_sum(values);
    expect(values == std::vector<float>(300'000, 7), "a large sum");
    expect(group.agree(true), "the first call on all");
    expect(failure_of<Cancelled>([&] { sum_of(world, 1); }).find("closed") != std::string::npos, "the world before was left");
    expect(failure_of<InvalidArgument>([&] { (void)world.reform(); }).find("left this world") != std::string::npos, "and is not reformed");
    group.barrier();
  });
  joiner.join();
}

TEST_CASE("several processes join at once, through different doors") {
  Doors doors(3);
  std::atomic<int> ranks{0};
  std::vector<std::unique_ptr<Process>> joiners;
  for (const int door : {2, 0, 1, 1})
    joiners.push_back(std::make_unique<Process>([&, door] {
      Group group = init(joiner_options(doors.of(door)));
      for (int round = 0; group.size() < 7 && round < kRounds; ++round)
        if (auto next = group.admit()) group = next->world;
      ranks += 1 << group.rank();
      expect(sum_of(group, 1) == 7, "all");
      group.barrier();
    }));
  run_elastic(3, [&](Group& world) {
    doors.open(world);
    Group group = grow_to(world, 7).world;
    expect(sum_of(group, 1) == 7, "all");
    group.barrier();
  });
  for (const auto& joiner : joiners) joiner->join();
  CHECK(ranks == 0b1111000);
}

TEST_CASE("those who knock before a growth join together, by door and then in the order of their knocks") {
  Doors doors(2);
  std::latch first_has_knocked(1), all_have_knocked(2);
  const auto body = [&](int door, int rank) {
    Group group = init(joiner_options(doors.of(door)));
    expect(group.rank() == rank && group.size() == 5 && group.epoch() == 1, "the rank of this place");
    group.barrier();
  };
  Process second_door([&] { body(1, 4); });
  Process first([&] { body(0, 2); });
  Process second([&] {
    first_has_knocked.wait();
    body(0, 3);
  });
  run_elastic(2, [&](Group& world) {
    doors.open(world);
    await_knocks(world, 1);
    if (world.rank() == 0) {
      first_has_knocked.count_down();
      await_knocks(world, 2);
    }
    all_have_knocked.arrive_and_wait();
    auto next = admit_now(world);
    expect(next && next->world.size() == 5, "all of them at once");
    next->world.barrier();
  });
  second_door.join();
  first.join();
  second.join();
}

TEST_CASE("a group of one grows, loses the new rank, and grows again") {
  Group group = init(elastic_options());
  REQUIRE(group.size() == 1);
  REQUIRE_FALSE(group.admit());
  const std::string door = group.door();
  for (std::uint32_t round = 0; round < 3; ++round) {
    Process joiner([&] {
      Group own = init(joiner_options(door));
      expect(own.rank() == 1 && own.epoch() == 2 * round + 1 && sum_of(own, 1) == 2, "the new rank");
    });
    group = grow_to(group, 2).world;
    CHECK(group.epoch() == 2 * round + 1);
    CHECK(sum_of(group, 1) == 2);
    joiner.join();
    use_up(group);
    group = group.reform().world;
    CHECK(group.size() == 1);
    CHECK(sum_of(group, 5) == 5);
    CHECK(group.door() == door);
  }
}

TEST_CASE("a rank is lost in a world that has grown, and others join after that") {
  for (const int leaver : {0, 1, 2}) {
    Doors doors(2);
    std::atomic<int> here{0};
    const auto live = [&](Group group) {
      const int origin = group.rank();
      expect(sum_of(group, 1 << origin) == 7, "three");
      ++here;
      for (int round = 0; here < 3 && round < kRounds; ++round) pass(1ms);
      if (origin == leaver) return;
      use_up(group);
      const Reformed next = group.reform();
      group = next.world;
      expect(next.lost == std::vector<int>{leaver} && group.epoch() == 2 && group.size() == 2, "two are left");
      expect(!group.shared().has_joined(), "not its first world");
      expect(sum_of(group, 1 << origin) == 7 - (1 << leaver), "the sum of two");
      expect(group.agree(true), "they agree");
      if (group.rank() == 0) {
        // The next one joins by the door of the highest rank, which may have joined itself.
        std::vector<std::int32_t> ready{1};
        group.broadcast(ready, 0);
      } else {
        std::vector<std::int32_t> ready{0};
        group.broadcast(ready, 0);
      }
      Process joiner([&, door = group.door(), last = group.rank() == 1] {
        if (!last) return;
        Group own = init(joiner_options(door));
        expect(own.rank() == 2 && own.epoch() == 3 && sum_of(own, 1) == 3, "one more");
        own.barrier();
      });
      group = grow_to(group, 3).world;
      expect(sum_of(group, 1) == 3, "three again");
      group.barrier();
      joiner.join();
    };
    Process joiner([&] { live(init(joiner_options(doors.of(1) + "," + doors.of(0)))); });
    run_elastic(2, [&](Group& world) {
      doors.open(world);
      live(grow_to(world, 3).world);
    });
    joiner.join();
  }
}

TEST_CASE("a rank that was left out joins the others again, by a door that it has known since it met them") {
  for (const int still : {0, 2}) {
    CAPTURE(still);
    std::latch others_go_on(2);
    run_ranks(
        3,
        [&](Group& world) {
          const std::string too_early = failure_of<InvalidArgument>([&] { (void)world.rejoin(); });
          expect(too_early.find("the others have gone on without this rank") != std::string::npos, too_early);
          if (world.rank() != still) {
            use_up(world);
            world = world.reform().world;
            expect(world.size() == 2, "the others go on");
            others_go_on.count_down();
            world = grow_to(std::exchange(world, Group()), 3).world;
          } else {
            stand_still(world, others_go_on);
            use_up(world);
            const std::string reason = failure_of<PeerLost>([&] { (void)world.reform(); });
            expect(reason.find("the others have gone on without rank " + std::to_string(still)) != std::string::npos, reason);
            const std::string door = world.door();
            world = world.rejoin();
            expect(world.rank() == 2 && world.size() == 3 && world.door() == door, "it is a new rank with the same door");
          }
          expect(sum_of(world, 1) == 3, "all are together");
        },
        impatient);
  }
}

TEST_CASE("a door has the port that it is given, or the socket") {
  const LoopbackSocket socket = open_loopback_socket();
  InitOptions options = elastic_options();
  options.door = to_string(socket.address);
  CHECK(failure_of<InvalidArgument>([&] { (void)init(options); }).find("RINGLET_DOOR") != std::string::npos);
  native::WorldConfig config;
  config.options.elastic = true;
  config.options.kernels = simd::find("");
  native::DoorSockets sockets;
  sockets.listener.reset(socket.descriptor);
  {
    const native::NativeWorld world(config, native::make_start(config, std::move(sockets)));
    CHECK(world.door()->address() == socket.address);
  }
  const Group group = init(options);
  CHECK(group.door() == *options.door);
}

TEST_CASE("who is who is asked of one side alone") {
  const auto text_of = [](const InitOptions& options) { return failure_of<InvalidArgument>([&] { (void)init(options); }); };
  InitOptions options = joiner_options("127.0.0.1:7000");
  options.rank = 1;
  CHECK(text_of(options).find("the option join is '127.0.0.1:7000'") != std::string::npos);
  CHECK(text_of(joiner_options("127.0.0.1")).find("the option join") != std::string::npos);
  CHECK(text_of(joiner_options("127.0.0.1:0")).find("needs a port") != std::string::npos);
  CHECK(text_of(joiner_options(",")).find("list of doors") != std::string::npos);
  CHECK(text_of(joiner_options("10.1.2.3:7000")).find("no token") != std::string::npos);
  Group alone;
  CHECK(alone.door().empty());
  CHECK(failure_of<InvalidArgument>([&] { (void)alone.admit(); }).find("RINGLET_ELASTIC=on") != std::string::npos);
}
