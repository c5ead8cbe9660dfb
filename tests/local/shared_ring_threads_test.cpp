#include <catch2/catch.hpp>
#include <cstddef>
#include <thread>

#include "tests/local/shared_ring_network.hpp"
#include "tests/transport/loopback.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::local;

namespace {

constexpr int kRounds = 10'000;

/// Sends one byte for each byte that comes, or begins with one.
class EchoUser final : public LinkUser {
 public:
  std::unique_ptr<Link> link;
  int owed = 0;
  int sent_bytes = 0;
  int received_bytes = 0;
  bool over = false;

  std::span<const ConstBytes> to_send() override { return {&part_, owed > 0 ? 1U : 0U}; }
  void sent(std::size_t) override {
    --owed;
    ++sent_bytes;
  }
  std::span<const Bytes> to_receive() override { return {&room_, 1}; }
  void received(std::size_t bytes) override {
    received_bytes += static_cast<int>(bytes);
    owed += static_cast<int>(bytes);
    link->wake();
  }
  void receive_ended() override { over = true; }
  void link_failed(const Status&) override { over = true; }

 private:
  std::array<std::byte, 1> byte_{};
  ConstBytes part_{byte_};
  std::array<std::byte, 8> buffer_{};
  Bytes room_{buffer_};
};

/// One end of a connection with a loop of its own.
struct End {
  UvLoop loop;
  UvNetwork network{loop};
  EchoUser user;

  /// Turns the loop until all rounds are done; false where the patience ends before. Looks a few times before it blocks, so that the two
  /// ends meet at any instant of it.
  bool run(int looks) {
    bool expired = false;
    const auto guard = loop.after(kPatience, [&] { expired = true; });
    const auto goes_on = [&] { return user.sent_bytes < kRounds && !user.over && !expired; };
    unsigned random = 1;
    while (goes_on()) {
      random = random * 1664525 + 1013904223;
      for (unsigned left = (random >> 16) % static_cast<unsigned>(looks * 8); left > 0; --left) loop.poll();
      // Behind the last round nobody would wake it.
      if (goes_on()) loop.wait();
    }
    loop.cancel(guard);
    return !expired;
  }
};

}  // namespace

TEST_CASE("no side sleeps through what the other one writes while it falls asleep") {
  if (!shares_memory()) return;
  End one, two;
  std::unique_ptr<Link> dialled, accepted;
  auto listener = two.network.listen(kAnyPort, [&](std::unique_ptr<Link> link) { accepted = std::move(link); });
  REQUIRE(listener.ok());
  one.network.dial(listener.value()->address(), kPatience, [&](Result<std::unique_ptr<Link>> link) {
    if (link.ok()) dialled = std::move(link).value();
  });
  REQUIRE(drive(one.loop, [&] { return dialled != nullptr; }));
  REQUIRE(drive(two.loop, [&] { return accepted != nullptr; }));
  auto views = two_views();
  one.user.link = std::make_unique<SharedRingLink>(std::move(dialled), std::move(views[0]), LinkSide::dialler, one.loop);
  two.user.link = std::make_unique<SharedRingLink>(std::move(accepted), std::move(views[1]), LinkSide::acceptor, two.loop);
  one.user.owed = 1;
  bool two_in_time = false;
  std::thread other([&] {
    two.user.link->start(two.user);
    two_in_time = two.run(3);
  });
  one.user.link->start(one.user);
  one.user.link->wake();
  const bool one_in_time = one.run(4);
  other.join();
  CHECK(one_in_time);
  CHECK(two_in_time);
  CHECK(one.user.sent_bytes >= kRounds);
  CHECK(two.user.sent_bytes >= kRounds);
  CHECK_FALSE(one.user.over);
}
