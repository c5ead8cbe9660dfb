#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "transport/uv/uv_loop.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::test {

constexpr Duration kPatience = Duration::seconds(60);
inline const Address kAnyPort{"127.0.0.1", 0};

/// Runs the loop until `done`, with blocking and polling turns. Returns false where that takes longer than any machine should need.
inline bool drive(UvLoop& loop, const std::function<bool()>& done) {
  bool expired = false;
  const auto guard = loop.after(kPatience, [&] { expired = true; });
  for (unsigned turn = 0; !done() && !expired; ++turn) {
    if (turn % 3 == 0)
      loop.wait();
    else
      loop.poll();
  }
  loop.cancel(guard);
  return !expired;
}

/// Runs the loop until everything that is under way has settled.
inline void settle(UvLoop& loop) {
  for (int quiet = 0; quiet < 64;) quiet = loop.poll() ? 0 : quiet + 1;
}

/// Returns byte `index` of the endless pattern `seed`.
inline std::byte pattern(std::uint64_t seed, std::uint64_t index) {
  const auto mixed = (index + seed * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::byte>(mixed >> 56);
}

/// Sends a pattern in parts of odd sizes, and receives another one into two parts of odd sizes and compares it.
class PatternUser final : public LinkUser {
 public:
  PatternUser(std::uint64_t seed, std::uint64_t peer_seed, std::size_t bytes_to_send, std::size_t longest_part = 70'000)
      : seed_(seed), peer_seed_(peer_seed), bytes_to_send_(bytes_to_send), random_(seed), longest_part_(longest_part) {
    outgoing_.resize(5 * longest_part);
    incoming_.resize(2 * longest_part);
  }

  void start_on(std::unique_ptr<Link> new_link) {
    link = std::move(new_link);
    link->start(*this);
    link->wake();
  }

  std::span<const ConstBytes> to_send() override {
    called("to_send");
    if (!prepared_) prepare();
    return send_parts_;
  }
  void sent(std::size_t bytes) override {
    called("sent");
    prepared_ = false;
    CHECK(bytes > 0);
    sent_bytes += bytes;
    if (on_sent) on_sent();
  }
  std::span<const Bytes> to_receive() override {
    called("to_receive");
    first_part_ = 1 + random_() % longest_part_;
    const auto second = random_() % longest_part_;
    receive_parts_ = {Bytes(incoming_).first(first_part_), Bytes(incoming_).subspan(longest_part_, second)};
    return receive_parts_;
  }
  void received(std::size_t bytes) override {
    called("received");
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto found = i < first_part_ ? incoming_[i] : incoming_[longest_part_ + i - first_part_];
      intact = intact && found == pattern(peer_seed_, received_bytes + i);
    }
    received_bytes += bytes;
    if (on_received) on_received();
  }
  void receive_ended() override {
    called("receive_ended");
    CHECK_FALSE(ended);
    ended = true;
    if (on_ended) on_ended();
  }
  void link_failed(const Status& status) override {
    called("link_failed");
    failure = status;
    over_ = true;
    if (on_failed) on_failed();
  }

  /// Destroys the link. No call may come after this.
  void close() {
    over_ = true;
    link.reset();
  }
  bool failed() const { return !failure.ok(); }

  std::unique_ptr<Link> link;
  std::size_t sent_bytes = 0;
  std::size_t received_bytes = 0;
  bool intact = true;
  bool ended = false;
  Status failure;
  std::function<void()> on_sent, on_received, on_ended, on_failed;

 private:
  void called(const char* what) {
    INFO(what);
    CHECK_FALSE(over_);
  }
  void prepare() {
    prepared_ = true;
    send_parts_.clear();
    auto index = sent_bytes;
    const auto parts = 1 + random_() % 5;
    for (std::size_t part = 0; part < parts && index < bytes_to_send_; ++part) {
      const auto room = Bytes(outgoing_).subspan(part * longest_part_, std::min(random_() % longest_part_, bytes_to_send_ - index));
      for (auto& byte : room) byte = pattern(seed_, index++);
      send_parts_.push_back(room);
    }
    if (index == sent_bytes && index < bytes_to_send_) prepare();
  }

  std::uint64_t seed_;
  std::uint64_t peer_seed_;
  std::size_t bytes_to_send_;
  std::mt19937_64 random_;
  std::size_t longest_part_;
  std::size_t first_part_ = 0;
  bool prepared_ = false;
  bool over_ = false;
  std::vector<std::byte> outgoing_;
  std::vector<std::byte> incoming_;
  std::vector<ConstBytes> send_parts_;
  std::array<Bytes, 2> receive_parts_;
};

/// Two users at the ends of a connection over the loopback, both on one loop.
struct Pair {
  UvLoop loop;
  UvNetwork network{loop};
  std::unique_ptr<Link> dialled;
  std::unique_ptr<Link> accepted;

  explicit Pair(const Address& address = kAnyPort) {
    auto listener = network.listen(address, [this](std::unique_ptr<Link> link) { accepted = std::move(link); });
    REQUIRE(listener.ok());
    network.dial(listener.value()->address(), kPatience, [this](Result<std::unique_ptr<Link>> link) {
      CHECK(link.status().text() == "");
      if (link.ok()) dialled = std::move(link).value();
    });
    REQUIRE(drive(loop, [this] { return dialled && accepted; }));
  }
};

}  // namespace ringlet::test
