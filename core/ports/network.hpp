#pragma once

#include <functional>
#include <memory>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "core/base/time.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

/// An open port. Destruction closes it; accepted links stay open.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The address at which it listens. Where port 0 was asked for, it has the number that the system has chosen.
  virtual Address address() const = 0;
};

using Acceptor = std::function<void(std::unique_ptr<Link>)>;
using Dialled = std::function<void(Result<std::unique_ptr<Link>>)>;

/// Opens links. Belongs to the loop's thread; callbacks run on the loop, never inside the call.
class Network {
 public:
  virtual ~Network() = default;
  /// Opens a port. The host has to be numeric or "localhost". A failure is `invalid_argument` with the address and the reason, such as that
  /// the port is in use or the address is not one of this machine's.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) = 0;
  /// Resolves and connects, trying every address of the host. `on_dialled` runs exactly once: with a link, or with `timed_out` or
  /// `peer_lost`, the address and the reason. Dropped without a call if the network is destroyed first.
  virtual void dial(const Address& address, Duration timeout, Dialled on_dialled) = 0;
};

}  // namespace ringlet
