#include "tests/web/web_network.hpp"

#include "tests/web/wslay_client.hpp"

namespace ringlet::test {

namespace {

class WebListener final : public Listener {
 public:
  WebListener(EventLoop& loop, Acceptor on_accept) : front_(loop, {}, {}, std::move(on_accept)) {}
  Address address() const override { return below_->address(); }

  web::WebFront front_;
  std::unique_ptr<Listener> below_;
};

}  // namespace

/// Asks for the upgrade over a link that has been dialled.
class WebNetwork::Handshake final : private LinkUser {
 public:
  Handshake(WebNetwork& network, const Address& address, Duration timeout, Dialled on_dialled)
      : network_(network), on_dialled_(std::move(on_dialled)) {
    request_ = "GET /ring HTTP/1.1\r\nHost: " + to_string(address) +
               "\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    network_.below_->dial(address, timeout, [this](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) return finish(link.status());
      link_ = std::move(link).value();
      link_->start(*this);
      link_->wake();
    });
  }

 private:
  std::span<const ConstBytes> to_send() override {
    part_ = std::as_bytes(std::span(request_)).subspan(sent_);
    return {&part_, 1};
  }
  void sent(std::size_t bytes) override { sent_ += bytes; }
  std::span<const Bytes> to_receive() override {
    room_ = std::as_writable_bytes(std::span(buffer_));
    return {&room_, 1};
  }
  void received(std::size_t bytes) override {
    answer_.append(buffer_.data(), bytes);
    const auto end = answer_.find("\r\n\r\n");
    if (end == std::string::npos) return;
    if (answer_.find("HTTP/1.1 101 ") != 0 || answer_.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") > end)
      return finish(Status(Errc::peer_lost, answer_));
    const auto rest = std::as_bytes(std::span(answer_)).subspan(end + 4);
    finish(std::unique_ptr<Link>(std::make_unique<WslayClient>(network_.loop_, std::move(link_), rest, network_.seed_++)));
  }
  void receive_ended() override { finish(Status(Errc::peer_lost, "no answer to the upgrade")); }
  void link_failed(const Status& status) override { finish(status); }

  void finish(Result<std::unique_ptr<Link>> result) {
    const Dialled on_dialled = std::move(on_dialled_);
    network_.handshakes_.remove_if([this](const auto& other) { return other.get() == this; });
    on_dialled(std::move(result));
  }

  WebNetwork& network_;
  Dialled on_dialled_;
  std::string request_, answer_;
  std::size_t sent_ = 0;
  ConstBytes part_;
  std::array<char, 700> buffer_{};
  Bytes room_;
  std::unique_ptr<Link> link_;
};

WebNetwork::WebNetwork(EventLoop& loop, std::unique_ptr<Network> below, unsigned seed)
    : loop_(loop), seed_(seed), below_(std::move(below)) {}

WebNetwork::~WebNetwork() = default;

Result<std::unique_ptr<Listener>> WebNetwork::listen(const Address& address, Acceptor on_accept) {
  auto listener = std::make_unique<WebListener>(loop_, std::move(on_accept));
  auto below = below_->listen(address, [front = &listener->front_](std::unique_ptr<Link> link) { front->receive(std::move(link), {}); });
  if (!below.ok()) return below.status();
  listener->below_ = std::move(below).value();
  return Result<std::unique_ptr<Listener>>(std::move(listener));
}

void WebNetwork::dial(const Address& address, Duration timeout, Dialled on_dialled) {
  handshakes_.push_back(std::make_unique<Handshake>(*this, address, timeout, std::move(on_dialled)));
}

}  // namespace ringlet::test
