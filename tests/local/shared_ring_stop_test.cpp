#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "tests/local/attacked_ring.hpp"

using namespace ringlet;
using namespace ringlet::test;
using namespace ringlet::local;

namespace {

/// Sends zeros, and receives only while it has room.
class PausingUser final : public LinkUser {
 public:
  std::unique_ptr<Link> link;
  std::size_t bytes_to_send = 0;
  std::size_t received_bytes = 0;
  bool has_room = false;
  bool ended = false;
  Status failure;
  std::function<void()> on_sent;

  void start_on(std::unique_ptr<Link> new_link) {
    link = std::move(new_link);
    link->start(*this);
  }
  void send(std::size_t bytes) {
    bytes_to_send = bytes;
    link->wake();
  }
  void make_room() {
    has_room = true;
    link->wake();
  }
  bool failed() const { return !failure.ok(); }

  std::span<const ConstBytes> to_send() override {
    part_ = ConstBytes(zeros_).first(std::min(bytes_to_send, zeros_.size()));
    return {&part_, part_.empty() ? 0U : 1U};
  }
  void sent(std::size_t bytes) override {
    bytes_to_send -= bytes;
    if (on_sent) on_sent();
  }
  std::span<const Bytes> to_receive() override { return {&room_, has_room ? 1U : 0U}; }
  void received(std::size_t bytes) override { received_bytes += bytes; }
  void receive_ended() override { ended = true; }
  void link_failed(const Status& status) override { failure = status; }

 private:
  std::vector<std::byte> zeros_ = std::vector<std::byte>(100'000);
  std::vector<std::byte> buffer_ = std::vector<std::byte>(4096);
  Bytes room_{buffer_};
  ConstBytes part_;
};

/// The victim has no room for 10 bytes that the attacker wrote.
struct StoppedRing : AttackedRing<PausingUser> {
  StoppedRing() {
    if (memory == nullptr) return;
    settle(pair.loop);
    write(10);
    turn();
  }
  void turn() {
    settle(pair.loop);
    if (sources.source->poll()) settle(pair.loop);
  }
};

}  // namespace

TEST_CASE("room that comes while a ring is filled is used although the ring stays full") {
  StoppedRing stopped;
  if (stopped.memory == nullptr) return;
  PausingUser& victim = stopped.victim;
  victim.on_sent = [&] {
    if (!victim.has_room) victim.make_room();
  };
  victim.send(2 * kRingBytes);
  stopped.turn();
  CHECK(victim.bytes_to_send == kRingBytes);
  CHECK(victim.received_bytes == 10);
}

TEST_CASE("what waits for room in the ring of a peer that is gone fails once the rest was received") {
  StoppedRing stopped;
  if (stopped.memory == nullptr) return;
  PausingUser& victim = stopped.victim;
  victim.send(2 * kRingBytes);
  stopped.turn();
  stopped.bells.close();
  stopped.turn();
  REQUIRE_FALSE(victim.failed());
  victim.make_room();
  settle(stopped.pair.loop);
  CHECK(victim.received_bytes == 10);
  CHECK(victim.ended);
  PollSource& source = *stopped.sources.source;
  CHECK_FALSE(source.prepare_to_block());
  source.awake();
  CHECK(source.poll());
  CHECK(victim.failure.code() == Errc::peer_lost);
}

TEST_CASE("bytes behind the end of a ring break the link") {
  StoppedRing stopped;
  if (stopped.memory == nullptr) return;
  stopped.rings().rings[0].ended.store(1);
  stopped.victim.make_room();
  stopped.turn();
  CHECK(stopped.victim.received_bytes == 10);
  REQUIRE(stopped.victim.ended);
  stopped.write(20);
  stopped.expect_break();
  CHECK(stopped.victim.received_bytes == 10);
}

TEST_CASE("a user without room loses nothing when a peer that has ended leaves a byte unread") {
  StoppedRing stopped;
  if (stopped.memory == nullptr) return;
  PausingUser& victim = stopped.victim;
  stopped.rings().sides[0].awaits.store(static_cast<std::uint32_t>(Awaits::bytes));
  stopped.rings().rings[0].ended.store(1);
  victim.link->finish_sending();
  stopped.pair.loop.flush();
  CHECK(stopped.rings().rings[1].ended.load() == 1);
  stopped.bells.close();
  stopped.turn();
  // It is gone, so what it says from now on does not count.
  stopped.rings().rings[0].ended.store(0);
  CHECK(stopped.bells.received_bytes == 0);
  CHECK_FALSE(victim.failed());
  CHECK(stopped.sources.source->prepare_to_block());
  stopped.sources.source->awake();
  victim.make_room();
  CHECK_FALSE(stopped.sources.source->prepare_to_block());
  stopped.sources.source->awake();
  stopped.turn();
  CHECK(victim.received_bytes == 10);
  CHECK(victim.ended);
  CHECK_FALSE(victim.failed());
}
