#include "wasm/cpp/browser_network.hpp"

#include <utility>

namespace ringlet::browser {

namespace {

class BrowserLink final : public Link {
 public:
  explicit BrowserLink(std::shared_ptr<BrowserSocket> socket) : socket_(std::move(socket)) {}
  ~BrowserLink() override { socket_->abandon(); }

  void start(LinkUser& user) override { socket_->start(user); }
  void wake() override { socket_->wake(); }
  void finish_sending() override { socket_->finish_sending(); }
  std::string peer_name() const override { return socket_->name(); }

 private:
  const std::shared_ptr<BrowserSocket> socket_;
};

}  // namespace

BrowserNetwork::~BrowserNetwork() {
  for (const auto& dial : dials_) {
    loop_.cancel(dial->timer);
    dial->socket->abandon();
  }
}

Result<std::unique_ptr<Listener>> BrowserNetwork::listen(const Address& address, Acceptor) {
  return Status{Errc::invalid_argument, "cannot listen at " + to_string(address) + ": a browser can only dial"};
}

void BrowserNetwork::dial(const Address& address, Duration timeout, Dialled on_dialled) {
  const std::string name = to_string(address);
  const auto dial = std::make_shared<Dial>();
  dial->on_dialled = std::move(on_dialled);
  dials_.insert(dial);
  dial->timer =
      loop_.after(timeout, [this, dial, name] { finish(dial, {Errc::timed_out, "cannot connect to " + name + ": no answer in time"}); });
  dial->socket =
      BrowserSocket::dial(loop_, traffic_, "ws://" + name + "/ring", name, [this, dial](const Status& status) { finish(dial, status); });
}

void BrowserNetwork::finish(const std::shared_ptr<Dial>& dial, const Status& status) {
  const std::shared_ptr<Dial> kept = dial;  // the caller's reference is destroyed with the task that holds it
  dials_.erase(kept);
  loop_.cancel(kept->timer);
  if (!status.ok()) {
    kept->socket->abandon();
    return kept->on_dialled(status);
  }
  kept->on_dialled(Result<std::unique_ptr<Link>>(std::make_unique<BrowserLink>(kept->socket)));
}

}  // namespace ringlet::browser
