#pragma once

#include <memory>
#include <unordered_set>

#include "core/ports/network.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

namespace uv {
class Dial;
}

/// The Network of TCP connections. Belongs to the loop's thread, and is destroyed before the loop. Destruction drops pending dials without
/// calling anybody; links and listeners live on.
class UvNetwork final : public Network {
 public:
  explicit UvNetwork(UvLoop& loop) : loop_(loop) {}
  ~UvNetwork() override;
  UvNetwork(const UvNetwork&) = delete;
  UvNetwork& operator=(const UvNetwork&) = delete;

  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override;
  /// Takes over an inherited TCP socket that is bound and listens already; the listener closes it. `invalid_argument` where `descriptor` is
  /// no such socket; it stays the caller's then.
  Result<std::unique_ptr<Listener>> adopt_listener(int descriptor, Acceptor on_accept);
  /// The addresses of the host are tried in turn, each for an even part of the time that is left.
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override;

 private:
  UvLoop& loop_;
  std::unordered_set<uv::Dial*> dials_;
};

}  // namespace ringlet
