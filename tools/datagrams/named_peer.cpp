#include "tools/datagrams/named_peer.hpp"

#include <cstring>

namespace ringlet::uv {
namespace {

constexpr std::size_t kMaxPeerAddresses = 4;
// A machine's address may change, and a name that is unknown now may belong to a machine that is being switched on.
constexpr Duration kBetweenLookUps = Duration::seconds(30);
constexpr Duration kAfterFailure = Duration::seconds(2);

}  // namespace

NamedPeer::NamedPeer(LoopState& loop, const Address& address) : loop_(loop), address_(address), addresses_(numeric_addresses(address)) {
  if (addresses_.empty()) look_up();
}

void NamedPeer::look_up() {
  timer_ = 0;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  request_.data = this;
  const auto on_found = [](uv_getaddrinfo_t* request, int error, addrinfo* found) {
    auto& self = *static_cast<NamedPeer*>(request->data);
    self.looking_up_ = false;
    if (self.dropped_)
      delete &self;
    else
      self.loop_.dispatch([&] { self.looked_up(error, found); });
    uv_freeaddrinfo(found);
  };
  const int error = uv_getaddrinfo(loop_.uv(), &request_, on_found, address_.host.c_str(), std::to_string(address_.port).c_str(), &hints);
  looking_up_ = error == 0;
  if (error != 0) look_up_again(kAfterFailure);
}

void NamedPeer::looked_up(int error, const addrinfo* found) {
  unknown_ = error != 0;
  if (unknown_) return look_up_again(kAfterFailure);
  addresses_.clear();
  for (; found != nullptr && addresses_.size() < kMaxPeerAddresses; found = found->ai_next) {
    auto& address = addresses_.emplace_back();
    std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    address.length = found->ai_addrlen;
  }
  look_up_again(kBetweenLookUps);
}

void NamedPeer::look_up_again(Duration delay) {
  timer_ = loop_.after(delay, [this] { look_up(); });
}

void NamedPeer::drop() {
  dropped_ = true;
  if (timer_ != 0) loop_.cancel(timer_);
  if (!looking_up_) {
    delete this;
    return;
  }
  uv_cancel(reinterpret_cast<uv_req_t*>(&request_));
}

}  // namespace ringlet::uv
