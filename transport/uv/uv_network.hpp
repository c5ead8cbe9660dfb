#pragma once

#include <functional>
#include <memory>
#include <unordered_set>

#include "core/ports/network.hpp"
#include "transport/unique_fd.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

namespace uv {
class Dial;
}

/// The Network of TCP connections. It belongs to the loop's thread, and must be destroyed before the loop. Its destructor drops pending
/// dials without running their callbacks; links and listeners live on.
class UvNetwork final : public Network {
 public:
  explicit UvNetwork(UvLoop& loop) : loop_(loop) {}
  ~UvNetwork() override;
  UvNetwork(const UvNetwork&) = delete;
  UvNetwork& operator=(const UvNetwork&) = delete;

  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override;
  /// Takes over an inherited TCP socket that is already bound and listens; fails with `invalid_argument` if it is
  /// something else.
  Result<std::unique_ptr<Listener>> adopt_listener(UniqueFd socket, Acceptor on_accept);
  /// Tries the host's addresses in turn; each gets an equal part of the time that is left.
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override;
  /// Finds out whether the machine itself says that nobody listens there, at any of the host's addresses. `on_known` runs once, from the
  /// loop; dropped without a call if the network is destroyed first.
  void look(const Address& address, Duration timeout, std::function<void(bool refused)> on_known);

 private:
  UvLoop& loop_;
  std::unordered_set<uv::Dial*> dials_;
};

}  // namespace ringlet
