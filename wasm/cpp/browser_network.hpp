#pragma once

#include <memory>
#include <unordered_set>

#include "core/ports/network.hpp"
#include "wasm/cpp/browser_socket.hpp"

namespace ringlet::browser {

/// A network of WebSockets to ranks that listen, at ws://host:port/ring. It cannot listen, since nobody can dial a browser.
class BrowserNetwork final : public Network {
 public:
  explicit BrowserNetwork(BrowserLoop& loop) : loop_(loop) {}
  ~BrowserNetwork() override;
  BrowserNetwork(const BrowserNetwork&) = delete;
  BrowserNetwork& operator=(const BrowserNetwork&) = delete;

  /// Always fails with `invalid_argument`.
  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override;
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override;

  const Traffic& traffic() const { return *traffic_; }

 private:
  /// A dial under way: the socket, and the timer that ends it.
  struct Dial {
    std::shared_ptr<BrowserSocket> socket;
    TimerId timer = 0;
    Dialled on_dialled;
  };
  void finish(const std::shared_ptr<Dial>& dial, const Status& status);

  BrowserLoop& loop_;
  const std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
  std::unordered_set<std::shared_ptr<Dial>> dials_;
};

}  // namespace ringlet::browser
