// web_echo_server sends back on each WebSocket what comes, and serves a page of one file. It prints its port, and ends with its standard
// input.

#include <cstdio>
#include <list>
#include <thread>
#include <vector>

#include "transport/uv/uv_loop.hpp"
#include "transport/uv/uv_network.hpp"
#include "transport/web/web_front.hpp"

using namespace ringlet;

namespace {

/// Receives no more than it could send back.
class Echo final : public LinkUser {
 public:
  explicit Echo(std::unique_ptr<Link> link) : link_(std::move(link)) {
    link_->start(*this);
    link_->wake();
  }
  bool over() const { return over_; }

  std::span<const ConstBytes> to_send() override {
    part_ = ConstBytes(buffer_).subspan(sent_, received_ - sent_);
    return {&part_, 1};
  }
  void sent(std::size_t bytes) override {
    sent_ += bytes;
    if (sent_ < received_) return;
    sent_ = received_ = 0;
    link_->wake();
  }
  std::span<const Bytes> to_receive() override {
    room_ = Bytes(buffer_).subspan(received_);
    return {&room_, 1};
  }
  void received(std::size_t bytes) override {
    received_ += bytes;
    link_->wake();
  }
  void receive_ended() override { link_->finish_sending(); }
  void link_failed(const Status& status) override {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    over_ = true;
  }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 20);
  std::size_t received_ = 0, sent_ = 0;
  ConstBytes part_;
  Bytes room_;
  bool over_ = false;
  std::unique_ptr<Link> link_;
};

}  // namespace

int main() {
  UvLoop loop;
  UvNetwork network(loop);
  std::list<Echo> echoes;
  const std::string text = "<p>echo</p>";
  const auto bytes = std::as_bytes(std::span(text));
  auto page = web::PageBundle::unpack(web::PageBundle::pack({{"/index.html", "text/html", {bytes.begin(), bytes.end()}, {}}}));
  if (!page.ok()) return 1;
  web::WebFront front(loop, std::move(page).value(), {}, [&](std::unique_ptr<Link> link) {
    echoes.remove_if([](const Echo& echo) { return echo.over(); });
    echoes.emplace_back(std::move(link));
  });
  auto listener = network.listen({"127.0.0.1", 0}, [&](std::unique_ptr<Link> link) { front.receive(std::move(link), {}); });
  if (!listener.ok()) return 1;
  std::printf("%u\n", static_cast<unsigned>(listener.value()->address().port));
  std::fflush(stdout);
  bool ended = false;
  std::thread watcher([&] {
    while (std::getchar() != EOF) continue;
    loop.post([&ended] { ended = true; });
  });
  while (!ended) loop.wait();
  watcher.join();
  return 0;
}
