#pragma once

#include <catch2/catch.hpp>

#include "sim/sim_network.hpp"
#include "tests/sim/byte_user.hpp"

namespace ringlet::test {

/// Two nodes, a link that the first dials, and a user at each end. All members are destroyed before the world.
struct TwoNodes {
  SimWorld world;
  SimNode& one = world.add_node();
  SimNode& two = world.add_node();
  ByteUser dialler;
  ByteUser acceptor;
  std::unique_ptr<Listener> listener;
  std::optional<Status> dial_status;

  explicit TwoNodes(SimOptions options) : world(options) {
    auto opened = two.network().listen({two.host(), 0}, [this](std::unique_ptr<Link> link) { acceptor.use(std::move(link)); });
    listener = std::move(opened).value();
  }
  void dial(Duration timeout = Duration::seconds(10)) {
    one.network().dial(listener->address(), timeout, [this](Result<std::unique_ptr<Link>> link) {
      dial_status = link.status();
      if (link.ok()) dialler.use(std::move(link).value());
    });
  }
  void connect() {
    dial();
    REQUIRE(world.run_until([this] { return dialler.link && acceptor.link; }) == RunEnd::done);
  }
};

}  // namespace ringlet::test
