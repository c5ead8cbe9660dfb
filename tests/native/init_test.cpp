#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "native/given_descriptor.hpp"
#include "native/status/status_report.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"
#include "tests/transport/raw_socket.hpp"
#include "transport/unique_fd.hpp"
#include "transport/web/page_bundle.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

/// Runs both ranks of a group that init() forms, and rethrows the first exception.
void run_pair(const InitOptions& common, const std::function<void(Group&)>& body) {
  const LoopbackSocket coordinator = open_loopback_socket();
  std::vector<std::exception_ptr> failures(2);
  const auto run = [&](int rank) {
    try {
      InitOptions options = common;
      options.rank = rank;
      options.world_size = 2;
      options.coordinator = to_string(coordinator.address);
      options.status = false;
      if (rank == 0) options.listen_fd = coordinator.descriptor;
      Group group = init(options);
      body(group);
    } catch (...) {
      failures[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  // The caller's socket is still the caller's.
  expect(::close(coordinator.descriptor) == 0, "the socket is closed already");
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

TEST_CASE("groups of one process meet each at its own socket, with its own token, whatever the environment says") {
  const LoopbackSocket launched = open_loopback_socket();
  ::setenv("RINGLET_COORDINATOR", to_string(launched.address).c_str(), 1);
  ::setenv("RINGLET_COORDINATOR_FD", std::to_string(launched.descriptor).c_str(), 1);
  ::setenv("RINGLET_TOKEN", "the token of the environment", 1);
  run_pair({.token = "a token of the first group"}, [](Group& first) {
    const int rank = first.rank();
    expect(sum_of(first, 1) == 2, "the first sum");
    if (rank == 0)
      run_pair({.token = "a token of the second group"}, [](Group& second) { expect(sum_of(second, 10) == 20, "the second group"); });
    expect(sum_of(first, 2) == 4, "the last sum");
  });
  for (const char* name : {"RINGLET_COORDINATOR", "RINGLET_COORDINATOR_FD", "RINGLET_TOKEN"}) ::unsetenv(name);
  ::close(launched.descriptor);
}

TEST_CASE("a program behind one that has closed a launcher's descriptors learns what to do, and what only tells the launcher is left out") {
  ::setenv("RINGLET_MEMBERSHIP_FD", "524288:1:1", 1);
  run_pair({}, [](Group& group) { expect(sum_of(group, 1) == 2, "the sum"); });
  ::setenv("RINGLET_COORDINATOR", "127.0.0.1:9", 1);
  ::setenv("RINGLET_COORDINATOR_FD", "524288", 1);
  CHECK_THROWS_WITH(init({.rank = 0, .world_size = 2}),
                    Contains("RINGLET_COORDINATOR_FD is '524288', which is not an open descriptor here") && Contains("close_fds=False"));
  for (const char* name : {"RINGLET_COORDINATOR", "RINGLET_COORDINATOR_FD", "RINGLET_MEMBERSHIP_FD"}) ::unsetenv(name);
}

TEST_CASE("a rank tells whoever started it whose loss has ended its group") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  ::setenv("RINGLET_MEMBERSHIP_FD", native::describe_descriptor(ends[1])->c_str(), 1);
  run_pair({}, [](Group& group) {
    if (group.rank() == 1) return;
    const std::string text = failure_of<PeerLost>([&] { group.barrier(); });
    expect(text.find("rank 1") != std::string::npos, text);
  });
  ::unsetenv("RINGLET_MEMBERSHIP_FD");
  std::array<char, 256> told{};
  const ssize_t count = ::recv(ends[0], told.data(), told.size(), MSG_DONTWAIT);
  REQUIRE(count > 0);
  CHECK(std::string(told.data(), static_cast<std::size_t>(count)) == native::loss_report(1));
  for (const int end : ends) ::close(end);
}

TEST_CASE("where no descriptor is left, a rank does without what only tells its launcher") {
  const RawSocket given;
  native::Setting setting{"RINGLET_MEMBERSHIP_FD", *native::describe_descriptor(given.descriptor())};
  const native::GivenDescriptor parsed = native::parse_descriptor(setting);
  CHECK(parsed.duplicate());
  const NoDescriptorsLeft none;
  CHECK_FALSE(parsed.duplicate());
}

TEST_CASE("each group of a process that serves a page has it") {
  const std::vector<std::byte> packed = web::PageBundle::pack({});
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  REQUIRE(std::fwrite(packed.data(), 1, packed.size(), file.get()) == packed.size());
  REQUIRE(std::fflush(file.get()) == 0);
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const UniqueFd ours(ends[0]), theirs(ends[1]);
  ::setenv("RINGLET_PAGE_FD", std::to_string(::fileno(file.get())).c_str(), 1);
  ::setenv("RINGLET_PRESENCE_FD", native::describe_descriptor(theirs.get())->c_str(), 1);
  for (int times = 0; times < 2; ++times) {
    const Group group = init({.rank = 0, .world_size = 1, .elastic = true});
    CHECK(group.size() == 1);
  }
  for (const char* name : {"RINGLET_PAGE_FD", "RINGLET_PRESENCE_FD"}) ::unsetenv(name);
  // What stands at these numbers is still theirs.
  CHECK(native::describe_descriptor(::fileno(file.get())));
  CHECK(::send(theirs.get(), "x", 1, MSG_DONTWAIT) == 1);
}

TEST_CASE("init() that fails before the ranks meet leaves no descriptor open") {
  const LoopbackSocket coordinator = open_loopback_socket(), taken = open_loopback_socket();
  InitOptions options{.rank = 0, .world_size = 2, .coordinator = to_string(coordinator.address), .elastic = true};
  options.listen_fd = coordinator.descriptor;
  const auto fail = [](const InitOptions& given) { CHECK_THROWS_AS(init(given), InvalidArgument); };
  const auto count_kept = [&](const InitOptions& given) {
    fail(given);  // what is opened once for the process stays
    const std::size_t before = open_descriptors();
    fail(given);
    return open_descriptors() - before;
  };
  InitOptions door_in_use = options;
  door_in_use.door = to_string(taken.address);
  CHECK(count_kept(door_in_use) == 0);
  ::setenv("RINGLET_DOOR_FD", "524288", 1);
  CHECK(count_kept(options) == 0);
  ::setenv("RINGLET_DOOR_FD", std::to_string(taken.descriptor).c_str(), 1);
  ::setenv("RINGLET_PAGE_SOCKET_FD", "524288", 1);
  CHECK(count_kept(options) == 0);
  ::setenv("RINGLET_PAGE_SOCKET_FD", std::to_string(taken.descriptor).c_str(), 1);
  ::setenv("RINGLET_PAGE_FD", "524288", 1);
  CHECK(count_kept(options) == 0);
  for (const char* name : {"RINGLET_DOOR_FD", "RINGLET_PAGE_SOCKET_FD", "RINGLET_PAGE_FD"}) ::unsetenv(name);
  for (const int descriptor : {coordinator.descriptor, taken.descriptor}) ::close(descriptor);
}

#ifdef __linux__
TEST_CASE("ranks of one machine meet at any address of its loopback, as at that of its own name") {
  run_ranks(
      3, [](Group& group) { expect(sum_of(group, 1) == 3, "the sum"); },
      [](native::WorldConfig& config) {
        config.meeting.coordinator->host = "127.0.1.1";
        if (config.given.listener) ::close(*config.given.listener);
        config.given.listener.reset();
      });
}
#endif

TEST_CASE("listen_fd has to be a socket that listens") {
  const InitOptions closed{.rank = 0, .world_size = 2, .coordinator = "127.0.0.1:9", .listen_fd = 1 << 19};
  CHECK_THROWS_WITH(init(closed), Contains("the option listen_fd is 524288, which is not a socket that listens"));
}
