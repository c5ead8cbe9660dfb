#include "tests/web/web_sim.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// Asks for the page's large file, and takes so much of it each second.
class SlowReader final : public LinkUser {
 public:
  SlowReader(WebSim& sim, std::size_t bytes_per_second) : loop_(sim.client_node.loop()), buffer_(bytes_per_second) {
    sim.client_node.network().dial(sim.listener->address(), Duration::seconds(10), [this](Result<std::unique_ptr<Link>> link) {
      link_ = std::move(link).value();
      link_->start(*this);
      link_->wake();
      take_more();
    });
  }
  std::size_t taken() const { return taken_; }
  bool ended() const { return ended_; }

 private:
  void take_more() {
    allowed_ = buffer_.size();
    link_->wake();
    if (!ended_) loop_.after(Duration::seconds(1), [this] { take_more(); });
  }

  std::span<const ConstBytes> to_send() override { return {&rest_, rest_.empty() ? 0U : 1U}; }
  void sent(std::size_t bytes) override { rest_ = rest_.subspan(bytes); }
  std::span<const Bytes> to_receive() override {
    room_ = Bytes(buffer_).first(allowed_);
    return {&room_, room_.empty() ? 0U : 1U};
  }
  void received(std::size_t bytes) override {
    taken_ += bytes;
    allowed_ -= bytes;
  }
  void receive_ended() override { ended_ = true; }
  void link_failed(const Status&) override { ended_ = true; }

  EventLoop& loop_;
  const std::string request_ = "GET /core.wasm HTTP/1.1\r\nHost: ring:1\r\nConnection: close\r\n\r\n";
  ConstBytes rest_ = std::as_bytes(std::span(request_));
  std::vector<std::byte> buffer_;
  Bytes room_;
  std::size_t allowed_ = 0, taken_ = 0;
  bool ended_ = false;
  std::unique_ptr<Link> link_;
};

/// Paths that keep so little that the server sends as slowly as the reader takes.
PathOptions narrow() {
  PathOptions paths = PathOptions::calm();
  paths.send_buffer_bytes = paths.receive_buffer_bytes = {2048, 2048};
  return paths;
}

}  // namespace

TEST_CASE("a file comes whole while it comes at all, however long that takes") {
  WebSim sim(1, {}, narrow());
  const SlowReader reader(sim, 1500);
  sim.world.run_for(Duration::seconds(100));
  CHECK(reader.taken() > 140'000);
  CHECK_FALSE(reader.ended());
  REQUIRE(sim.world.run_until([&] { return reader.ended(); }) == RunEnd::done);
  CHECK(reader.taken() > 200'000);
}

TEST_CASE("an answer that nobody takes, or by a few bytes at a time, is given up") {
  const std::size_t bytes_per_second = GENERATE(0, 10);
  WebSim sim(1, {}, narrow());
  const SlowReader reader(sim, bytes_per_second);
  sim.world.run_for(Duration::seconds(50));
  CHECK(sim.front.connection_count() == 1);
  sim.world.run_for(Duration::seconds(20));
  CHECK(sim.front.connection_count() == 0);
}
