// Tests of what goes wrong while ranks join an elastic group.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <latch>
#include <memory>
#include <ringlet/ringlet.hpp>

#include "native/environment.hpp"
#include "native/joining.hpp"
#include "tests/native/joiners.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

native::WorldConfig knocker_config(const std::string& door, const std::string& token = "") {
  native::WorldConfig config;
  config.token = token;
  config.join = {parse_address(door).value()};
  return config;
}

std::size_t entries(const char* directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

/// The group of those that are left once it has failed.
Group without_the_lost(Group group) {
  expect(!failure_of<PeerLost>([&] { use_up(group), sum_of(group, 1); }).empty(), "the loss");
  return group.reform().world;
}

}  // namespace

TEST_CASE("a process that goes after its knock, or with its ticket, does not stop the group") {
  Doors doors(3);
  run_elastic(3, [&](Group& world) {
    doors.open(world);
    // It knocks and goes before anybody asks.
    if (world.rank() == 1) {
      expect(failure_of<Timeout>([&] {
               auto options = joiner_options(doors.of(1));
               options.connect_timeout = 100ms;
               (void)init(options);
             }).find("has not admitted this process yet") != std::string::npos,
             "nobody has admitted it");
    }
    world.barrier();
    expect(!world.admit(), "nobody is there");
    // It goes with its ticket, at the door of each rank.
    for (int door = 0; door < 3; ++door) {
      std::unique_ptr<Process> knocker;
      if (world.rank() == door) {
        knocker = std::make_unique<Process>(
            [&] { expect(native::Knocker(knocker_config(world.door()), Duration::seconds(30)).await_ticket().rank == 3, "its ticket"); });
        await_knocks(world, 1);
      }
      world.barrier();
      const auto begin = Clock::now();
      expect(!admit_now(world), "the new rank does not come");
      expect(Clock::now() - begin < 8s, "nobody waits until the time is over");
      expect(sum_of(world, 1) == 3 && world.epoch() == 0, "the group goes on");
      if (knocker) knocker->join();
    }
    std::unique_ptr<Process> joiner;
    if (world.rank() == 2)
      joiner = std::make_unique<Process>([&] {
        Group own = init(joiner_options(world.door()));
        expect(own.rank() == 3 && sum_of(own, 1) == 4, "the next one joins");
        own.barrier();
      });
    Group group = grow_to(world, 4).world;
    expect(sum_of(group, 1) == 4, "four");
    group.barrier();
    if (joiner) joiner->join();
  });
}

TEST_CASE("a process that takes its ticket and does nothing is waited for, while the group goes on") {
  Doors doors(2);
  std::latch over(2);
  Process knocker([&] {
    native::Knocker waits(knocker_config(doors.of(0)), Duration::seconds(30));
    (void)waits.await_ticket();
    over.wait();
  });
  run_elastic(2, [&](Group& world) {
    doors.open(world);
    auto& group = world.shared();
    if (world.rank() == 0) await_knocks(world, 1);
    world.barrier();
    expect(group.growth().begin({}), "somebody knocks");
    expect(group.growth().state() == GrowthState::forming, "the growth is under way");
    for (int step = 0; step < 100; ++step) expect(sum_of(world, 1) == 2, "the group goes on");
    group.growth().drop();
    expect(group.growth().state() == GrowthState::none, "nobody waits any more");
    expect(sum_of(world, 1) == 2, "the group goes on");
    over.count_down();
  });
  knocker.join();
}

TEST_CASE("a member that is lost while the group grows is lost, and the process joins after that") {
  for (const int turn : {0, 1, 2, 3, 4, 5}) {
    const int leaver = turn % 3;
    const bool next_is_ready = turn >= 3;
    CAPTURE(leaver, next_is_ready);
    Doors doors(3);
    std::latch all_have_begun(3);
    // The door of a rank that stays comes second.
    Process joiner([&] {
      Group own = init(joiner_options(doors.of(leaver) + "," + doors.of((leaver + 1) % 3)));
      if (own.size() == 4) own = without_the_lost(own);
      expect(own.rank() == 2 && own.size() == 3, "it takes the place at the end");
      expect(sum_of(own, 1) == 3, "three");
      own.barrier();
    });
    run_elastic(3, [&](Group& world) {
      doors.open(world);
      if (world.rank() == leaver) await_knocks(world, 1);
      world.barrier();
      auto& shared = world.shared();
      expect(shared.growth().begin({}), "somebody knocks");
      if (next_is_ready) await_next(world);
      // A rank that goes earlier fails this call on those that lack something of it.
      all_have_begun.arrive_and_wait();
      if (world.rank() == leaver) return;
      // If all have agreed before they hear that the rank has gone, it is lost in the next world.
      const auto next = shared.growth().finish({});
      Group group = without_the_lost(next ? Group(next) : world);
      if (!next) {
        expect(sum_of(group, 1) == 2, "two are left");
        group = grow_to(group, 3).world;
      }
      expect(sum_of(group, 1) == 3, "three");
      group.barrier();
    });
    joiner.join();
  }
}

TEST_CASE("a member that stays away from the switch stops it for all") {
  Doors doors(2);
  std::latch all_have_begun(2);
  Process joiner([&] {
    Group own = init(joiner_options(doors.of(0)));
    expect(own.epoch() == 2 && sum_of(own, 1) == 3, "it is admitted at the second try");
    own.barrier();
  });
  run_elastic(2, [&](Group& world) {
    doors.open(world);
    if (world.rank() == 0) await_knocks(world, 1);
    world.barrier();
    auto& shared = world.shared();
    expect(shared.growth().begin({}), "somebody knocks");
    all_have_begun.arrive_and_wait();
    if (world.rank() == 0) {
      expect(shared.growth().finish({}) == nullptr, "the other one has ended the epoch");
    } else {
      world.revoke();
    }
    Group group = world.reform().world;
    expect(group.epoch() == 1 && group.size() == 2 && sum_of(group, 1) == 2, "both are there");
    group = grow_to(group, 3).world;
    expect(sum_of(group, 1) == 3, "three");
    group.barrier();
  });
  joiner.join();
}

TEST_CASE("a process that goes between its meeting and the switch is lost like any rank") {
  Doors doors(3);
  std::latch gone(1);
  Process leaver([&] {
    native::WorldConfig config = knocker_config(doors.of(1));
    native::Knocker knocker(config, Duration::seconds(30));
    const wire::Ticket ticket = knocker.await_ticket();
    config.options.elastic = true;
    config.options.kernels = simd::find("");
    config.options.rank = static_cast<int>(ticket.rank);
    config.options.size = static_cast<int>(ticket.world_size);
    config.options.epoch = ticket.epoch;
    config.status = false;
    config.meeting.coordinator = Address{ticket.host, static_cast<std::uint16_t>(ticket.port)};
    {
      const native::NativeWorld world(config, native::make_start(config));
    }
    gone.count_down();
  });
  run_elastic(3, [&](Group& world) {
    doors.open(world);
    if (world.rank() == 1) await_knocks(world, 1);
    world.barrier();
    auto& shared = world.shared();
    expect(shared.growth().begin({}), "somebody knocks");
    await_next(world);
    gone.wait();
    auto next = shared.growth().finish({});
    expect(next != nullptr, "nobody knows yet that the new rank has gone");
    Group group(std::move(next));
    expect(group.size() == 4 && group.epoch() == 1, "all switch");
    expect(failure_of<PeerLost>([&] { sum_of(group, 1); }).find("rank 3") != std::string::npos, "and learn it then");
    group = group.reform().world;
    expect(group.epoch() == 2 && group.size() == 3 && sum_of(group, 1) == 3, "the members are left");
    std::unique_ptr<Process> joiner;
    if (group.rank() == 2)
      joiner = std::make_unique<Process>([&] { expect(init(joiner_options(group.door())).epoch() == 3, "the next one joins"); });
    group = grow_to(group, 4).world;
    if (joiner) joiner->join();
  });
  leaver.join();
}

TEST_CASE("where a member is lost in the switch, the process that joins comes in with those that are left") {
  Doors doors(3);
  Process joiner([&] {
    Group own = init(joiner_options(doors.of(0)));
    expect(own.epoch() == 2 && own.rank() == 2 && own.size() == 3, "it follows the members to their next epoch");
    expect(own.shared().has_joined(), "which is its first one");
    expect(sum_of(own, 1) == 3, "three");
    own.barrier();
  });
  run_elastic(3, [&](Group& world) {
    doors.open(world);
    if (world.rank() == 0) await_knocks(world, 1);
    world.barrier();
    auto& shared = world.shared();
    expect(shared.growth().begin({}), "somebody knocks");
    await_next(world);
    if (world.rank() == 1) {
      expect(shared.survivors().agree(true, {}), "this one is for it, too");
      return;
    }
    auto next = shared.growth().finish({});
    expect(next != nullptr, "all switch");
    Group group(std::move(next));
    expect(!failure_of<PeerLost>([&] { sum_of(group, 1); }).empty(), "and learn the loss then");
    group = group.reform().world;
    expect(group.epoch() == 2 && group.size() == 3 && sum_of(group, 1) == 3, "two members and the new rank");
    group.barrier();
  });
  joiner.join();
}

TEST_CASE("a process that has met the members but is not one says nothing of a group, and takes no guests from those who are") {
  std::array<int, 2> told{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, told.data()) == 0);
  // Those who joined with this process would take them there, and one knocks already.
  const LoopbackSocket page = open_loopback_socket();
  const int mine = ::dup(page.descriptor);
  const int guest = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(page.address.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(guest, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  Doors doors(1);
  Process joiner([&] {
    auto options = joiner_options(doors.of(0));
    options.connect_timeout = 3s;
    native::WorldConfig config = native::make_world_config(options, [](std::string_view) { return std::nullopt; });
    native::DoorSockets sockets;
    sockets.page.reset(page.descriptor);
    const auto start = native::make_start(config, std::move(sockets), UniqueFd(told[1]));
    const std::string failure = failure_of<Timeout>([&] { (void)native::join_group(config, start); });
    expect(failure.find("it was admitted before, and that failed") != std::string::npos, "nobody is left who has the group's state");
  });
  run_elastic(1, [&](Group& world) {
    doors.open(world);
    await_knocks(world, 1);
    expect(world.shared().growth().begin({}), "somebody knocks");
    await_next(world);
  });
  joiner.join();
  std::array<char, 256> said{};
  CHECK(::recv(told[0], said.data(), said.size(), MSG_DONTWAIT) == 0);
  CHECK(std::string(said.data()).empty());
  pollfd knocks{mine, POLLIN, 0};
  CHECK(::poll(&knocks, 1, 0) == 1);
  for (const int descriptor : {told[0], mine, guest}) ::close(descriptor);
}

TEST_CASE("a process with another token is refused at once") {
  const std::string token = "4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16";
  Doors doors(1);
  InitOptions options = elastic_options();
  options.token = token;
  options.listen = "127.0.0.1";
  Group group = init(options);
  const auto attempt = [&](const std::optional<std::string>& other) {
    InitOptions joiner = joiner_options(group.door());
    joiner.token = other;
    const auto begin = Clock::now();
    const std::string text = failure_of<Error>([&] { (void)init(joiner); });
    CHECK(Clock::now() - begin < 5s);
    CAPTURE(text);
    CHECK(text.find(group.door()) != std::string::npos);
    CHECK(text.find("RINGLET_TOKEN") != std::string::npos);
  };
  attempt("another-token-of-sixteen-letters");
  CHECK_FALSE(group.admit());
  Process joiner([&] {
    InitOptions own = joiner_options(group.door());
    own.token = token;
    expect(init(own).size() == 2, "with the token it is let in");
  });
  group = grow_to(group, 2).world;
  joiner.join();
}

TEST_CASE("where nobody is there, the error names the doors") {
  InitOptions options = joiner_options("127.0.0.1:1,127.0.0.1:2");
  options.connect_timeout = 300ms;
  const std::string text = failure_of<Timeout>([&] { (void)init(options); });
  CAPTURE(text);
  CHECK(text.find("127.0.0.1:1, 127.0.0.1:2") != std::string::npos);
  CHECK(text.find("300 ms") != std::string::npos);
}

TEST_CASE("bytes of all kinds at a door hurt nobody") {
  Group group = init(elastic_options());
  const Address door = parse_address(group.door()).value();
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\0'), std::string("RNGL"), std::string()}) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(door.port);
    REQUIRE(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    CHECK_FALSE(group.admit());
    ::close(descriptor);
  }
  // A rank that takes the door for a coordinator is told.
  InitOptions options = elastic_options();
  options.rank = 1;
  options.world_size = 2;
  options.coordinator = group.door();
  options.peer_memory = false;
  CHECK(failure_of<Error>([&] { (void)init(options); }).find("this is the door of a group that runs") != std::string::npos);
  Process joiner([&] { expect(init(joiner_options(group.door())).size() == 2, "a process that may join does"); });
  group = grow_to(group, 2).world;
  joiner.join();
}

TEST_CASE("ranks that come and go leave no descriptor and no thread behind") {
  Group group = init(elastic_options());
  const auto round = [&] {
    Process joiner([&] {
      Group own = init(joiner_options(group.door()));
      expect(sum_of(own, 1) == 2, "two");
    });
    group = grow_to(group, 2).world;
    CHECK(sum_of(group, 1) == 2);
    joiner.join();
    use_up(group);
    group = group.reform().world;
  };
  // A world that has met others listens, and has a thread, which the first one has not.
  const std::size_t descriptors = entries("/proc/self/fd") + 1, threads = entries("/proc/self/task") + 1;
  for (int number = 0; number < 20; ++number) round();
  // Those of the last round may still be closing.
  const auto are_gone = [&] { return entries("/proc/self/fd") <= descriptors && entries("/proc/self/task") <= threads; };
  for (int wait = 0; wait < kRounds && !are_gone(); ++wait) pass(std::chrono::milliseconds(1));
  CHECK(are_gone());
}
