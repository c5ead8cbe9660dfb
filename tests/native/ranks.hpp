#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ringlet/ringlet.hpp>
#include <stdexcept>
#include <string>

#include "native/shared_group.hpp"
#include "tests/native/expect.hpp"

namespace ringlet::test {

/// A socket that listens, for rank 0 of a world.
struct LoopbackSocket {
  int descriptor;
  Address address;
};
LoopbackSocket open_loopback_socket();

/// Runs `body` as every rank of a world over loopback TCP, one thread each, and rethrows the first exception. `configure` may change a
/// rank's options before it meets the others.
void run_ranks(int size, const std::function<void(Group&)>& body, const std::function<void(native::WorldConfig&)>& configure = {});
/// The same for tests that need the world itself, which lives as long as any of its groups.
void run_worlds(int size, const std::function<void(const std::weak_ptr<native::NativeWorld>&, Group&)>& body,
                const std::function<void(native::WorldConfig&)>& configure = {});
/// The same in an elastic group.
void run_elastic(int size, const std::function<void(Group&)>& body, OnSplit on_split = OnSplit::wait);

/// Requires that `body` throws this error, with `part` in its text, on both of two ranks.
template <class Expected>
void expect_error(const std::string& part, const std::function<void(Group&)>& body) {
  run_ranks(2, [&](Group& world) {
    try {
      body(world);
    } catch (const Expected& error) {
      expect(std::string(error.what()).find(part) != std::string::npos, error.what());
      world.barrier();
      return;
    }
    throw std::runtime_error("no error that says: " + part);
  });
}

/// Runs `body` on one rank of two and `hostile` in the place of the other, `culprit`, which must be blamed for having sent what `part`
/// says. That ends the world.
void expect_blame(const std::string& part, const std::function<void(Group&)>& body, const std::function<void(Group&)>& hostile,
                  int culprit = 1);

/// The sum of all ranks' values.
std::int32_t sum_of(Group& group, std::int32_t value);
/// Sums until the world fails.
void use_up(Group& group);

}  // namespace ringlet::test
