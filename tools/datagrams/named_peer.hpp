#pragma once

#include <vector>

#include "transport/uv/loop_state.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::uv {

/// A host given by name, whose addresses are looked up again from time to time. It has one owner, which releases it by drop().
class NamedPeer {
 public:
  static NamedPeer* start(LoopState& loop, const Address& address) { return new NamedPeer(loop, address); }
  void drop();
  /// Returns at most four addresses, and none while the name cannot be resolved.
  const std::vector<SocketAddress>& addresses() const noexcept { return addresses_; }
  /// Tells whether the last look-up found no host of that name.
  bool is_unknown() const noexcept { return unknown_; }
  const std::string& name() const noexcept { return address_.host; }

 private:
  NamedPeer(LoopState& loop, const Address& address);
  ~NamedPeer() = default;
  NamedPeer(const NamedPeer&) = delete;
  NamedPeer& operator=(const NamedPeer&) = delete;

  void look_up();
  void looked_up(int error, const addrinfo* found);
  void look_up_again(Duration delay);

  LoopState& loop_;
  Address address_;
  std::vector<SocketAddress> addresses_;
  uv_getaddrinfo_t request_{};
  TimerId timer_ = 0;
  bool looking_up_ = false;
  bool unknown_ = false;
  bool dropped_ = false;
};

}  // namespace ringlet::uv
