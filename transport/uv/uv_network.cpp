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

Result<std::unique_ptr<Listener>> UvNetwork::adopt_listener(int descriptor, Acceptor on_accept) {
  return uv::adopt_listener(loop_.state(), descriptor, std::move(on_accept));
}

void UvNetwork::dial(const Address& address, Duration timeout, Dialled on_dialled) {
  const auto on_end = [this](uv::Dial* dial) { dials_.erase(dial); };
  dials_.insert(uv::Dial::start(loop_.state(), address, timeout, std::move(on_dialled), on_end));
}

}  // namespace ringlet
