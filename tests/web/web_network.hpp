#pragma once

#include <list>
#include <memory>

#include "core/ports/event_loop.hpp"
#include "core/ports/network.hpp"
#include "transport/web/web_front.hpp"

namespace ringlet::test {

/// A network of WebSockets over another network. It listens with the front that is tested, and dials with wslay.
class WebNetwork final : public Network {
 public:
  WebNetwork(EventLoop& loop, std::unique_ptr<Network> below, unsigned seed);
  ~WebNetwork() override;
  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override;
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override;

 private:
  class Handshake;

  EventLoop& loop_;
  unsigned seed_;
  std::list<std::unique_ptr<Handshake>> handshakes_;
  std::unique_ptr<Network> below_;
};

}  // namespace ringlet::test
