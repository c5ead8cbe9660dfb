// Tests of groups that survive the loss of ranks.
#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <ringlet/ringlet.hpp>
#include <thread>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;
using test::run_elastic;
using test::sum_of;
using test::use_up;

namespace {

/// Waits until all ranks have come here: an operation may end on some ranks and fail on others, which have not ended it when one leaves.
class Gate {
 public:
  void pass(int size) {
    ++here_;
    while (here_ < size) std::this_thread::yield();
  }

 private:
  std::atomic<int> here_{0};
};

}  // namespace

TEST_CASE("the ranks that are left go on in a world of their own, in their order") {
  for (const int leaver : {0, 1, 3}) {
    Gate all;
    run_elastic(4, [&](Group& world) {
      expect(world.epoch() == 0, "the first epoch");
      const int origin = world.rank();
      auto half = world.split(origin % 2).value();
      expect(sum_of(world, 1 << origin) == 15, "all four");
      all.pass(4);
      if (origin == leaver) return;
      use_up(world);
      use_up(half);
      const Reformed next = world.reform();
      Group group = next.world;
      expect(group.epoch() == 1 && group.size() == 3, "three are left");
      expect(next.lost == std::vector<int>{leaver}, "who is lost");
      expect(next.before[static_cast<std::size_t>(group.rank())] == origin, "the rank before");
      expect(next.lineage == 0, "nobody else goes on");
      expect(sum_of(group, 1 << origin) == 15 - (1 << leaver), "the sum of three");
      expect(failure_of<InvalidArgument>([&] { (void)group.reform(); }).find("has not failed") != std::string::npos, "a world that works");
      auto again = group.split(0).value();
      std::vector<float> values(300'000, static_cast<float>(origin));
      again.all_sum(values);
      expect(values == std::vector<float>(300'000, static_cast<float>(6 - leaver)), "a large sum");
      group.barrier();
    });
  }
}

TEST_CASE("ranks go one after the other, to the last") {
  std::vector<Gate> all(4);
  run_elastic(4, [&](Group& world) {
    const int origin = world.rank();
    Group group = world;
    for (int leaver = 3; leaver > 0; --leaver) {
      expect(sum_of(group, 1) == leaver + 1, "all that are left");
      all[static_cast<std::size_t>(leaver)].pass(leaver + 1);
      if (origin == leaver) return;
      use_up(group);
      group = group.reform().world;
    }
    expect(group.size() == 1 && group.epoch() == 3 && sum_of(group, 7) == 7, "one is left");
  });
}

TEST_CASE("an epoch that is revoked ends on all ranks, and all go on") {
  Gate all;
  run_elastic(3, [&](Group& world) {
    sum_of(world, 1);
    all.pass(3);
    if (world.rank() == 1)
      world.revoke();
    else
      expect(failure_of<Cancelled>([&] {
               while (true) sum_of(world, 1);
             }).find("rank 1 has ended the epoch") != std::string::npos,
             "who did it");
    const Reformed next = world.reform();
    expect(next.lost.empty() && next.world.size() == 3, "nobody is lost");
    Group group = next.world;
    expect(sum_of(group, 1) == 3, "a sum");
  });
}

TEST_CASE("all ranks learn the same of what they agree on") {
  run_elastic(3, [](Group& world) {
    expect(world.agree(true), "all are for it");
    expect(!world.agree(world.rank() != 1), "one is against it");
    expect(world.agree(true), "all are for it again");
    if (world.rank() == 2) return;
    // In this call, or before it, rank 2 goes.
    const bool agreed = world.agree(true);
    Group group = world.reform().world;
    expect(sum_of(group, agreed ? 1 : 0) == (agreed ? 2 : 0), "the same answer");
    expect(!group.agree(group.rank() == 0), "the next call is the next one on both");
    expect(group.agree(true), "and so on");
    group.barrier();
  });
}

TEST_CASE("a rank that does not vote counts as false") {
  run_elastic(3, [](Group& world) {
    if (world.rank() == 2) return;
    bool agreed = false;
    if (world.rank() == 0) {
      agreed = world.agree(true);
    } else {
      use_up(world);
    }
    Group group = world.reform().world;
    expect(!agreed, "one did not vote");
    expect(group.agree(true), "the next call is the next one on both");
  });
}

TEST_CASE("a rank that tells of calls of agree() that cannot be is given up") {
  run_elastic(
      3,
      [](Group& world) {
        if (world.rank() == 2) return;
        if (world.rank() == 1) {
          native::Votes& votes = world.shared().world()->votes();
          const std::lock_guard lock(votes.mutex);
          votes.settle(std::vector<native::Votes::Told>{{-1000, 0, 0, 0}}, 0);
        }
        const std::string text = failure_of<ProtocolError>([&] {
          while (world.agree(true)) continue;
        });
        expect(text.find("rank 1 tells of -") != std::string::npos && text.find("calls of agree(), which cannot be") != std::string::npos,
               text);
        if (world.rank() == 0) expect(world.reform().world.size() == 1, "the other one goes on");
      },
      OnSplit::fork);
}

TEST_CASE("what is for elastic groups is refused elsewhere") {
  test::run_ranks(2, [](Group& world) {
    const std::string advice = "RINGLET_ELASTIC=on";
    expect(failure_of<InvalidArgument>([&] { (void)world.reform(); }).find(advice) != std::string::npos, "reform");
    expect(failure_of<InvalidArgument>([&] { (void)world.agree(true); }).find(advice) != std::string::npos, "agree");
    expect(failure_of<InvalidArgument>([&] { world.revoke(); }).find(advice) != std::string::npos, "revoke");
    world.barrier();
  });
  Group alone;
  CHECK(alone.agree(true));
  CHECK_FALSE(alone.agree(false));
  CHECK(alone.epoch() == 0);
}

TEST_CASE("an elastic group of one rank does what larger ones do") {
  run_elastic(1, [](Group& world) {
    expect(world.elastic() && world.agree(true) && !world.agree(false), "it agrees with itself");
    world.revoke();
    expect(failure_of<Cancelled>([&] { sum_of(world, 1); }).find("rank 0 has ended the epoch") != std::string::npos, "it has ended");
    const Reformed next = world.reform();
    Group group = next.world;
    expect(next.lost.empty() && group.epoch() == 1 && sum_of(group, 7) == 7, "it goes on");
  });
}

TEST_CASE("a rank leaves although it still has its groups") {
  for (const int leaver : {0, 2}) {
    Gate all;
    run_elastic(3, [&](Group& world) {
      const Group copy = world;
      Group half = world.split(0).value();
      expect(sum_of(world, 1) == 3, "all");
      all.pass(3);
      if (world.rank() == leaver) {
        copy.leave();
        copy.leave();
        expect(!failure_of<Cancelled>([&] { sum_of(world, 1); }).empty(), "the group");
        expect(!failure_of<Cancelled>([&] { sum_of(half, 1); }).empty(), "one that split() made");
        expect(failure_of<InvalidArgument>([&] { (void)world.reform(); }).find("has left") != std::string::npos, "it does not go on");
        return;
      }
      use_up(world);
      const Reformed next = world.reform();
      Group group = next.world;
      expect(next.lost == std::vector<int>{leaver} && sum_of(group, 1) == 2, "the others go on");
    });
  }
}

TEST_CASE("a rank leaves in the midst of another thread's call") {
  run_elastic(2, [&](Group& world) {
    sum_of(world, 1);
    if (world.rank() == 1) {
      use_up(world);
      Group group = world.reform().world;
      return expect(sum_of(group, 1) == 1, "one goes on");
    }
    std::int32_t value = 1;
    Work pending = world.recv_async(TensorView(&value, DType::i32, 1), 1);
    world.leave();
    expect(!failure_of<Cancelled>([&] { pending.wait(); }).empty(), "the call ends");
    expect(!failure_of<Cancelled>([&] { sum_of(world, 1); }).empty(), "as those that follow");
  });
}

TEST_CASE("a rank of a world that is not elastic leaves") {
  test::run_ranks(2, [&](Group& world) {
    sum_of(world, 1);
    if (world.rank() == 0) return world.leave();
    expect(!failure_of<PeerLost>([&] { sum_of(world, 1); }).empty(), "the other one is told");
  });
  Group alone;
  alone.leave();
  CHECK_THROWS_AS(sum_of(alone, 1), Cancelled);
}

TEST_CASE("several threads that go on get the same world") {
  run_elastic(3, [](Group& world) {
    if (world.rank() == 2) return;
    use_up(world);
    std::vector<Group> groups(2, world);
    std::vector<std::thread> threads;
    for (Group& group : groups) threads.emplace_back([&group, &world] { group = world.reform().world; });
    for (auto& thread : threads) thread.join();
    expect(groups[0].epoch() == 1 && groups[1].epoch() == 1 && sum_of(groups[0], 1) == 2 && sum_of(groups[1], 2) == 4, "one world");
  });
}
