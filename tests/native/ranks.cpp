#include "tests/native/ranks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace ringlet::test {

LoopbackSocket open_loopback_socket() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  if (descriptor < 0 || ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(descriptor, 128) != 0 ||
      ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("no loopback socket");
  return {descriptor, {"127.0.0.1", ntohs(address.sin_port)}};
}

void run_ranks(int size, const std::function<void(Group&)>& body, const std::function<void(native::WorldConfig&)>& configure) {
  run_worlds(size, [&](const std::weak_ptr<native::NativeWorld>&, Group& group) { body(group); }, configure);
}

void run_worlds(int size, const std::function<void(const std::weak_ptr<native::NativeWorld>&, Group&)>& body,
                const std::function<void(native::WorldConfig&)>& configure) {
  const LoopbackSocket coordinator = open_loopback_socket();
  std::once_flag failed;
  std::exception_ptr failure;
  std::latch all_have_met(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      // It outlives the try block, since the others fail when a rank leaves, and the first failure is the one to tell.
      std::optional<Group> group;
      try {
        native::WorldConfig config;
        config.options.rank = rank;
        config.options.size = size;
        config.options.kernels = simd::find("");
        config.options.operation_timeout = Duration::seconds(60);
        config.meeting.coordinator = coordinator.address;
        config.meeting.world_id = 4711;
        if (rank == 0) config.given.listener = coordinator.descriptor;
        if (configure) configure(config);
        native::MeetingSockets sockets;
        sockets.listener.reset(config.given.listener.value_or(-1));
        auto owner = std::make_shared<native::NativeWorld>(config, native::make_start(config), std::move(sockets));
        const std::weak_ptr<native::NativeWorld> world = owner;
        group.emplace(std::make_shared<native::SharedGroup>(std::move(owner)));
        // Without this wait, a rank that has not yet been told to begin could meet the failure of one that has begun.
        all_have_met.arrive_and_wait();
        body(world, *group);
      } catch (...) {
        std::call_once(failed, [&] { failure = std::current_exception(); });
        if (!group) all_have_met.count_down();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

void run_elastic(int size, const std::function<void(Group&)>& body, OnSplit on_split) {
  run_ranks(size, body, [on_split](native::WorldConfig& config) {
    config.options.elastic = true;
    config.on_split = on_split;
    config.status = false;
  });
}

void expect_blame(const std::string& part, const std::function<void(Group&)>& body, const std::function<void(Group&)>& hostile,
                  int culprit) {
  const std::string text = "rank " + std::to_string(culprit) + " sent " + part;
  const auto is_blamed = [&](const ProtocolError& error) {
    expect(error.status().rank() == culprit && std::string(error.what()).find(text) != std::string::npos, error.what());
  };
  run_ranks(2, [&](Group& world) {
    try {
      (world.rank() == culprit ? hostile : body)(world);
    } catch (const ProtocolError& error) {
      is_blamed(error);
    }
    try {
      world.barrier();
    } catch (const ProtocolError& error) {
      return is_blamed(error);
    }
    throw std::runtime_error("the world goes on without blame for " + part);
  });
}

std::int32_t sum_of(Group& group, std::int32_t value) {
  std::vector<std::int32_t> sum{value};
  group.all_sum(sum);
  return sum[0];
}

void use_up(Group& group) {
  try {
    while (true) sum_of(group, 1);
  } catch (const Error&) {
  }
}

}  // namespace ringlet::test
