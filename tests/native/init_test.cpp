#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

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

TEST_CASE("listen_fd has to be a socket that listens") {
  const InitOptions closed{.rank = 0, .world_size = 2, .coordinator = "127.0.0.1:9", .listen_fd = 1 << 19};
  CHECK_THROWS_WITH(init(closed), Contains("InitOptions::listen_fd is 524288, which is not a socket that listens"));
}
