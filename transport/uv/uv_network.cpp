#include "transport/uv/uv_network.hpp"

#include "transport/uv/uv_dial.hpp"
#include "transport/uv/uv_listener.hpp"

namespace ringlet {

UvNetwork::~UvNetwork() {
  for (auto* dial : dials_) dial->abandon();
}

Result<std::unique_ptr<Listener>> UvNetwork::listen(const Address& address, Acceptor on_accept) {
  return uv::open_listener(loop_.state(), address, std::move(on_accept));
}

Result<std::unique_ptr<Listener>> UvNetwork::adopt_listener(UniqueFd socket, Acceptor on_accept) {
  return uv::adopt_listener(loop_.state(), std::move(socket), std::move(on_accept));
}

void UvNetwork::dial(const Address& address, Duration timeout, Dialled on_dialled) {
  const auto on_end = [this](uv::Dial* dial) { dials_.erase(dial); };
  dials_.insert(uv::Dial::start(loop_.state(), address, timeout, std::move(on_dialled), on_end));
}

void UvNetwork::look(const Address& address, Duration timeout, std::function<void(bool refused)> on_known) {
  const auto refused = std::make_shared<bool>();
  const auto on_end = [this, refused](uv::Dial* dial) {
    *refused = dial->refused();
    dials_.erase(dial);
  };
  const auto on_dialled = [refused, on_known = std::move(on_known)](const Result<std::unique_ptr<Link>>&) { on_known(*refused); };
  dials_.insert(uv::Dial::start(loop_.state(), address, timeout, on_dialled, on_end));
}

}  // namespace ringlet
