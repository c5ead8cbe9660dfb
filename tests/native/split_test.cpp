#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <exception>
#include <future>
#include <numeric>
#include <thread>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int sum_of_ranks(Group& group, int value) {
  std::vector<std::int32_t> sum{value};
  group.all_sum(sum);
  return sum[0];
}

std::vector<std::int32_t> gathered(Group& group, std::int32_t value) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::vector<std::int32_t>{value}, all);
  return all;
}

/// Returns the address of a port of the loopback at which nobody listens now.
std::string free_address() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  const bool bound = descriptor >= 0 && ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(descriptor);
  if (!bound) throw std::runtime_error("no loopback socket");
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

}  // namespace

TEST_CASE("members form groups by themselves, by several threads at the same time") {
  test::run_ranks(4, [](Group& world) {
    const int rank = world.rank();
    const std::vector<int> all{3, 2, 1, 0}, pair{rank / 2 * 2, rank / 2 * 2 + 1};
    if (rank == 0) {
      // The others take no part.
      Group alone = world.create(std::vector<int>{0});
      expect(alone.size() == 1 && sum_of_ranks(alone, 5) == 5, "alone");
    }
    int sum = 0;
    std::thread other([&] {
      Group reversed = world.create(all, 1);
      sum = gathered(reversed, rank)[0];
    });
    Group half = world.create(pair, 2);
    other.join();
    expect(sum == 3, "reversed");
    expect(half.size() == 2 && half.rank() == rank % 2 && sum_of_ranks(half, rank) == (rank < 2 ? 1 : 5), "halves");
    // A part of a part, and a group that its members leave at once.
    Group part = half.create(std::vector<int>{1, 0});
    expect(part.rank() == 1 - rank % 2 && sum_of_ranks(part, 1) == 2, "a part of a part");
    for (int i = 0; i < 100; ++i) expect(world.create(pair, 3).size() == 2, "left");
    if (rank < 2) {
      const auto failure = failure_of<MismatchError>([&] { (void)world.create(rank == 0 ? std::vector<int>{1, 0} : pair, 4); });
      expect(contains(failure, "names other ranks"), "a mismatch");
    }
    world.barrier();
  });
}

TEST_CASE("split by parity, then by halves") {
  test::run_ranks(8, [](Group& world) {
    const int rank = world.rank();
    auto parity = world.split(rank % 2).value();
    expect(parity.size() == 4 && parity.rank() == rank / 2, "parity");
    auto half = world.split(rank / 4).value();
    expect(half.size() == 4 && half.rank() == rank % 4, "half");
    expect(sum_of_ranks(parity, rank) == (rank % 2 == 0 ? 12 : 16), "sum over a parity");
    // The result of one group is used in the other.
    const int half_sum = sum_of_ranks(half, rank);
    expect(half_sum == (rank < 4 ? 6 : 22), "sum over a half");
    expect(gathered(parity, half_sum) == std::vector<std::int32_t>{6, 6, 22, 22}, "gathered across");
    auto quarter = parity.split(parity.rank() / 2).value();
    expect(quarter.size() == 2 && sum_of_ranks(quarter, rank) == 2 * (rank / 4 * 4 + rank % 2) + 2, "a half of a parity");
    auto alone = quarter.split(quarter.rank()).value();
    expect(alone.size() == 1 && sum_of_ranks(alone, rank) == rank, "a group of one");
    world.barrier();
  });
}

TEST_CASE("a negative colour is in no group, and keys order") {
  test::run_ranks(4, [](Group& world) {
    const int rank = world.rank();
    expect(world.split(rank == 2 ? -1 : 0).has_value() == (rank != 2), "a negative colour");
    expect(!world.split(-5).has_value(), "nobody at all");
    auto reversed = world.split(7, world.size() - rank).value();
    expect(reversed.rank() == 3 - rank && reversed.size() == 4, "reversed");
    expect(gathered(reversed, rank) == std::vector<std::int32_t>{3, 2, 1, 0}, "gathered in the keys' order");
    std::vector<float> from_root{static_cast<float>(rank)};
    reversed.broadcast(from_root, 0);
    expect(from_root[0] == 3, "the root is the rank in the group");
    std::vector<std::int64_t> message{rank};
    if (reversed.rank() == 0) reversed.send(message, 3);
    if (reversed.rank() == 3) reversed.recv(message, 0);
    expect(message[0] == (rank == 0 ? 3 : rank), "a message from its first to its last rank");
  });
}

TEST_CASE("groups work at the same time as each other and their parent, from several threads") {
  test::run_ranks(4, [](Group& world) {
    auto row = world.split(world.rank() / 2).value();
    auto column = world.split(world.rank() % 2).value();
    std::vector<std::exception_ptr> failures(3);
    const auto work = [&](std::size_t which, Group group, float expected) {
      try {
        for (const std::size_t count : {1U, 3000U, 400'000U, 17U}) {
          std::vector<float> values(count, static_cast<float>(group.rank() + 1));
          group.all_sum(values);
          expect(values == std::vector<float>(count, expected), "a sum of group " + std::to_string(which));
          auto part = group.split(0, -1).value();
          part.barrier();
        }
      } catch (...) {
        failures[which] = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    threads.emplace_back(work, 0, world, 10.0F);
    threads.emplace_back(work, 1, row, 3.0F);
    threads.emplace_back(work, 2, column, 3.0F);
    for (auto& thread : threads) thread.join();
    for (const auto& failure : failures)
      if (failure) std::rethrow_exception(failure);
  });
}

TEST_CASE("works keep their group alive, and groups their world") {
  test::run_ranks(4, [](Group& world) {
    std::optional<Group> half = world.split(world.rank() % 2);
    Group copy = *half;
    half.reset();
    world = Group();  // this handle is gone, but the world is not
    std::vector<float> values(300'000, 1.0F);
    Work work = copy.all_reduce_async(ReduceOp::sum, values, values);
    copy = Group();
    work.wait();
    expect(values == std::vector<float>(300'000, 2.0F), "the sum of a group whose values are gone");
  });
}

TEST_CASE("a group that another rank has let go of says so, and no call hangs") {
  std::atomic<int> past_barrier{0};
  test::run_ranks(3, [&](Group& world) {
    auto all = world.split(0, 2 - world.rank());
    sum_of_ranks(*all, 1);
    if (world.rank() == 1) all.reset();
    world.barrier();
    ++past_barrier;
    while (past_barrier < 3) std::this_thread::yield();  // a rank that is still in the barrier would get the failure
    if (world.rank() == 1) {
      const auto text = failure_of<PeerLost>([&] { world.barrier(); });  // the others have told it
      expect(contains(text, "rank 1 left the group"), text);
      return;
    }
    try {
      all->barrier();
      throw std::runtime_error("no error");
    } catch (const PeerLost& error) {
      expect(error.status().rank() == 1 && contains(error.what(), "left the group") && contains(error.what(), "ranks 2, 1, 0"),
             error.what());
    }
  });
}

TEST_CASE("letting a group go does not wait for another thread's operation") {
  test::run_ranks(2, [](Group& world) {
    auto pair = world.split(0);
    auto other = world.split(0);
    std::thread waiting([&, group = *pair]() mutable { group.barrier(); });
    // Rank 1 enters the barrier only after rank 0 has let a group go, while rank 0's other thread may be in the barrier.
    std::vector<std::int32_t> token{1};
    if (world.rank() == 0) {
      other.reset();
      world.send(token, 1, {.stream = {1}});
    } else {
      world.recv(token, 0, {.stream = {1}});
      other.reset();
    }
    waiting.join();
  });
}

TEST_CASE("a call returns when it is done, and does not wait for another thread's operation") {
  test::run_ranks(2, [](Group& world) {
    auto slow = world.split(0);
    auto quick = world.split(0);
    // Rank 1 enters this barrier only after all calls of rank 0's other thread have returned.
    const auto wait_for_slow = [&] { slow->barrier(); };
    std::future<void> waiting;
    if (world.rank() == 0) waiting = std::async(std::launch::async, wait_for_slow);
    for (int round = 0; round < 200; ++round) {
      quick->barrier();
      expect(world.link_info().size() == 1, "the links of two ranks");
      expect(quick->split(0).has_value(), "a split");
    }
    std::vector<std::int32_t> token{1};
    if (world.rank() == 0) {
      world.send(token, 1, {.stream = {1}});
      waiting.get();
    } else {
      world.recv(token, 0, {.stream = {1}});
      wait_for_slow();
    }
  });
}

TEST_CASE("a split refuses bad arguments before anything is sent") {
  test::run_ranks(2, [](Group& world) {
    if (world.rank() == 0) {
      expect(contains(failure_of<InvalidArgument>([&] { world.split(0, 0, {.stream = {5000}}); }), "stream 5000 does not exist"), "stream");
      expect(contains(failure_of<InvalidArgument>([&] { world.split(0, 0, {.timeout = std::chrono::milliseconds(0)}); }), "positive"),
             "timeout");
    }
    expect(world.split(0, -1, {.stream = {9}, .timeout = std::chrono::seconds(30)}).value().size() == 2, "it goes on");
  });
}

TEST_CASE("a world of one may be split") {
  Group world;
  CHECK_FALSE(world.split(-1).has_value());
  auto alone = world.split(3, 9).value();
  world = Group();
  CHECK(alone.size() == 1);
  CHECK(sum_of_ranks(alone, 5) == 5);
  CHECK(gathered(alone, 4) == std::vector<std::int32_t>{4});
  alone.barrier();
}

TEST_CASE("gradients are averaged over a part of the world") {
  test::run_ranks(4, [](Group& world) {
    auto half = world.split(world.rank() / 2).value();
    std::vector<float> gradient(1000, static_cast<float>(world.rank()));
    const std::vector<TensorView> gradients{gradient};
    average_gradients(half, gradients);
    expect(gradient == std::vector<float>(1000, world.rank() < 2 ? 0.5F : 2.5F), "the mean of a half");
  });
}

TEST_CASE("worlds with coordinators of their own form at the same time in one program") {
  constexpr int kWorlds = 3;
  constexpr int kSize = 2;
  std::vector<std::string> coordinators;
  for (int world = 0; world < kWorlds; ++world) coordinators.push_back(free_address());
  std::vector<std::exception_ptr> failures(kWorlds * kSize);
  std::atomic<int> formed{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kWorlds * kSize; ++number) {
    threads.emplace_back([&, number] {
      try {
        InitOptions options;
        options.strict = true;
        options.rank = number % kSize;
        options.world_size = kSize;
        options.coordinator = coordinators[static_cast<std::size_t>(number / kSize)];
        options.connect_timeout = std::chrono::seconds(30);
        Group world = init(options);
        ++formed;
        while (formed < kWorlds * kSize) std::this_thread::yield();  // all are alive at once
        for (int round = 0; round < 100; ++round) expect(sum_of_ranks(world, number) == 4 * (number / kSize) + 1, "the sum of one world");
        auto part = world.split(0).value();
        expect(sum_of_ranks(part, 1) == kSize, "a part of one world");
      } catch (...) {
        failures[static_cast<std::size_t>(number)] = std::current_exception();
        ++formed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  CHECK(formed == kWorlds * kSize);
}
