#pragma once

#include <memory>
#include <unordered_set>

#include "core/ports/network.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

namespace uv {
class Dial;
}

/// TCP. Belongs to whoever has the loop, and is destroyed before it. Destruction drops pending dials without a call; links and listeners
/// live on.
class UvNetwork final : public Network {
 public:
  explicit UvNetwork(UvLoop& loop) : loop_(loop) {}
  ~UvNetwork() override;
  UvNetwork(const UvNetwork&) = delete;
  UvNetwork& operator=(const UvNetwork&) = delete;

  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override;
  /// Takes over an inherited TCP socket that is bound and listens already. `invalid_argument` where `descriptor` is not one; then it stays
  /// the caller's, otherwise the listener closes it.
  Result<std::unique_ptr<Listener>> adopt_listener(int descriptor, Acceptor on_accept);
  /// Each address of the host gets an even part of the time that is left.
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override;

 private:
  UvLoop& loop_;
  std::unordered_set<uv::Dial*> dials_;
};

}  // namespace ringlet
