#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <thread>

#include "tests/native/expect.hpp"
#include "tests/native/guest.hpp"
#include "tests/native/ranks.hpp"
#include "tests/process/recording_proxy.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

const std::string kToken = "a token for this test";

/// The native ranks and guests of one world, each on a thread. `on_guest` throws if something is wrong.
struct MixedWorld {
  int natives = 1;
  int guests = 1;
  bool v6 = false;
  std::string guest_token = kToken;
  PlacementPolicy policy = PlacementPolicy::automatic;

  void run(const std::function<void(Group&)>& on_native, const std::function<void(NativeGuest&, int number)>& on_guest) const {
    std::promise<Address> coordinator;
    auto address = coordinator.get_future().share();
    std::vector<std::future<void>> threads;
    for (int number = 0; number < guests; ++number)
      threads.push_back(std::async(std::launch::async, [&, address, number] {
        NativeGuest guest(address.get(), guest_token, "guest " + std::to_string(number));
        on_guest(guest, number);
      }));
    const int v6_socket = v6 ? listen_on_v6() : -1;
    run_ranks(natives, on_native, [&](native::WorldConfig& config) {
      config.options.size = natives + guests;
      config.options.guests = guests;
      config.options.placement.policy = policy;
      config.token = kToken;
      if (v6) config.meeting.coordinator = address_of(v6_socket);
      if (config.options.rank != 0) return;
      if (v6) {
        ::close(*config.given.listener);
        config.given.listener = v6_socket;
      }
      coordinator.set_value(*config.meeting.coordinator);
    });
    for (auto& thread : threads) thread.get();
  }

 private:
  static int listen_on_v6() {
    const int socket = ::socket(AF_INET6, SOCK_STREAM, 0);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_loopback;
    if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 || ::listen(socket, 16) != 0)
      throw std::runtime_error("no IPv6 loopback");
    return socket;
  }
  static Address address_of(int socket) {
    sockaddr_in6 bound{};
    socklen_t length = sizeof bound;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length);
    return {"::1", ntohs(bound.sin6_port)};
  }
};

void expect_ok(const Status& status) { expect(status.ok(), status.text()); }

}  // namespace

TEST_CASE("native ranks and guests compute together over TCP, and guests talk to each other through a relay") {
  const std::pair<int, int> ranks = GENERATE(std::pair(1, 1), std::pair(1, 3), std::pair(2, 2), std::pair(3, 1), std::pair(1, 8));
  const int natives = ranks.first, guests = ranks.second;
  const bool v6 = GENERATE(false, true);
  CAPTURE(natives, guests, v6);
  const int size = natives + guests;
  const float sum = static_cast<float>(size * (size + 1) / 2);
  const MixedWorld world{natives, guests, v6};
  world.run(
      [&](Group& group) {
        for (const std::size_t count : {1u, 1000u, 300'000u}) {
          std::vector<float> values(count, static_cast<float>(group.rank() + 1));
          group.all_sum(values);
          expect(values == std::vector<float>(count, sum), "the sum");
        }
        group.barrier();
      },
      [&](NativeGuest& guest, int) {
        expect_ok(guest.meet());
        for (const std::size_t count : {1u, 1000u, 300'000u}) {
          std::vector<float> values(count, static_cast<float>(guest.rank() + 1));
          expect_ok(guest.run(make_all_reduce(ReduceOp::sum, values, values, 1, guest.options())));
          expect(values == std::vector<float>(count, sum), "the guest's sum");
        }
        // Messages go round the guests, from each to the next one.
        if (guests > 1) {
          const auto other = [&](int step) { return natives + (guest.rank() - natives + step + guests) % guests; };
          const std::vector<float> mine(100'000, static_cast<float>(guest.rank()));
          std::vector<float> theirs(100'000);
          if ((guest.rank() - natives) == 0) expect_ok(guest.send(make_send(mine, other(1), guest.options())));
          expect_ok(guest.receive(make_receive(theirs, other(-1), guest.options())));
          if ((guest.rank() - natives) != 0) expect_ok(guest.send(make_send(mine, other(1), guest.options())));
          expect(theirs == std::vector<float>(100'000, static_cast<float>(other(-1))), "the message");
        }
        expect_ok(guest.run(make_barrier(guest.options())));
        guest.close();
      });
  SUCCEED();
}

TEST_CASE("one native with eight guests, and eight with one, compute alike however they are placed") {
  const std::pair<int, int> ranks = GENERATE(std::pair(1, 8), std::pair(8, 1));
  const int natives = ranks.first, guests = ranks.second;
  const auto policy = GENERATE(PlacementPolicy::automatic, PlacementPolicy::ring, PlacementPolicy::hub);
  CAPTURE(natives, guests, name_of(policy));
  // This is more than an owner keeps of one rank, so that contributions wait for each other.
  constexpr std::size_t kLarge = 1'500'000;
  const int size = natives + guests;
  const auto own = [](int rank, std::size_t count) {
    std::vector<std::int32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int32_t>(i % 1000) * (rank + 1);
    return values;
  };
  const auto sums = [&](std::size_t count) {
    std::vector<std::int32_t> values = own(0, count);
    for (auto& value : values) value *= size * (size + 1) / 2;
    return values;
  };
  MixedWorld world{natives, guests};
  world.policy = policy;
  std::mutex mutex;
  std::vector<std::string> placements;
  const auto tell = [&](const std::string& placement) {
    const std::lock_guard lock(mutex);
    placements.push_back(placement);
  };
  const int root = size - 1;
  world.run(
      [&](Group& group) {
        tell(group.describe_placement());
        for (const std::size_t count : {std::size_t{7}, std::size_t{40'000}, kLarge}) {
          std::vector<std::int32_t> values = own(group.rank(), count);
          group.all_sum(values);
          expect(values == sums(count), "the sum");
          group.broadcast(values, root);  // the root is a guest
          expect(values == own(root, count), "the root's values");
        }
        group.barrier();
      },
      [&](NativeGuest& guest, int) {
        expect_ok(guest.meet());
        const WorldOptions& options = guest.options();
        tell(describe_placement(size, options.topology, options.limits, options.placement));
        for (const std::size_t count : {std::size_t{7}, std::size_t{40'000}, kLarge}) {
          std::vector<std::int32_t> values = own(guest.rank(), count);
          expect_ok(guest.run(make_all_reduce(ReduceOp::sum, values, values, 1, options)));
          expect(values == sums(count), "the guest's sum");
          if (guest.rank() == root) values = own(root, count);
          expect_ok(guest.run(make_broadcast(values, root, options)));
          expect(values == own(root, count), "the root's values at the guest");
        }
        expect_ok(guest.run(make_barrier(options)));
        guest.close();
      });
  REQUIRE(placements.size() == static_cast<std::size_t>(size));
  for (const std::string& placement : placements) CHECK(placement == placements.front());
  CHECK_THAT(placements.front(), Contains(natives == 1 ? "1 native rank, 8 browsers: " : "8 native ranks on 1 machine, 1 browser: "));
  if (policy != PlacementPolicy::automatic) CHECK_THAT(placements.front(), Contains("as the placement is set"));
}

TEST_CASE("a guest that goes is named by all others as people know it") {
  std::atomic<int> told{0};
  const auto check = [&](const Status& status, int victim) {
    expect(status.code() == Errc::peer_lost && status.rank() == victim, status.text());
    expect(status.text().find("guest ") != std::string::npos && status.text().find("127.0.0.1") != std::string::npos, status.text());
    ++told;
  };
  const MixedWorld world{2, 3};
  world.run(
      [&](Group& group) {
        try {
          for (;;) group.barrier();
        } catch (const PeerLost& lost) {
          check(lost.status(), 4);
        }
      },
      [&](NativeGuest& guest, int) {
        expect_ok(guest.meet());
        const bool victim = guest.rank() == 4;
        Status status;
        for (int round = 0; status.ok() && !(victim && round == 20); ++round) status = guest.run(make_barrier(guest.options()));
        if (!victim) check(status, 4);
      });
  CHECK(told == 4);
}

TEST_CASE("a guest with another token is refused, and the ranks go on without it") {
  std::promise<Address> coordinator;
  auto address = coordinator.get_future();
  std::thread guests([&] {
    const Address at = address.get();
    NativeGuest impostor(at, "another token, as long", "impostor");
    const Status refused = impostor.meet();
    CHECK(refused.code() == Errc::mismatch);
    CHECK_THAT(refused.text(), Contains("tokens differ"));
    NativeGuest guest(at, kToken, "guest");
    REQUIRE(guest.meet().ok());
    // A guest that comes now is told that it is too late.
    NativeGuest late(at, kToken, "late");
    CHECK_THAT(late.meet().text(), Contains("the group is complete"));
    CHECK(guest.run(make_barrier(guest.options())).ok());
    guest.close();
  });
  run_ranks(
      1, [](Group& group) { group.barrier(); },
      [&](native::WorldConfig& config) {
        config.options.size = 2;
        config.options.guests = 1;
        config.token = kToken;
        coordinator.set_value(*config.meeting.coordinator);
      });
  guests.join();
}

TEST_CASE("recordings of a guest and old tokens are refused while a group computes, and it goes on") {
  constexpr std::size_t kHello = kPrefaceBytes + kNonceBytes;
  RecordingProxy proxy;
  std::promise<Address> coordinator;
  auto address = coordinator.get_future();
  std::thread guests([&] {
    const Address at = address.get();
    proxy.pass_on_to(at.port);
    NativeGuest guest({"127.0.0.1", proxy.port()}, kToken, "guest");
    REQUIRE(guest.meet().ok());
    REQUIRE(guest.run(make_barrier(guest.options())).ok());
    const std::string said = proxy.wait_for_dialler(kHello + kRequestBytes + sizeof(Proof) + 1).from_dialler;
    for (int i = 0; i < 5; ++i) CHECK(replay(at.port, said, kHello).size() == kHello);
    NativeGuest old(at, "the token of last week", "old");
    CHECK(old.meet().code() == Errc::mismatch);
    CHECK(guest.run(make_barrier(guest.options())).ok());
    guest.close();
  });
  run_ranks(
      1,
      [](Group& group) {
        group.barrier();
        group.barrier();
      },
      [&](native::WorldConfig& config) {
        config.options.size = 2;
        config.options.guests = 1;
        config.token = kToken;
        coordinator.set_value(*config.meeting.coordinator);
      });
  guests.join();
}
