#pragma once

#include <functional>
#include <memory>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "core/base/time.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

/// An open port; destruction closes it. Accepted links live on.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The address it really has: port 0 has become a number.
  virtual Address address() const = 0;
};

using Acceptor = std::function<void(std::unique_ptr<Link>)>;
using Dialled = std::function<void(Result<std::unique_ptr<Link>>)>;

/// Opens links. Belongs to the loop's thread; callbacks run on the loop, never inside the call.
class Network {
 public:
  virtual ~Network() = default;
  /// `invalid_argument` with the address and the reason (in use, not one of this machine's, ...). The host must be numeric or "localhost".
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) = 0;
  /// Resolves and connects, trying every address of the host. `on_dialled` runs exactly once: with a link, or with `timed_out` or
  /// `peer_lost`, the address and the reason. Dropped without a call if the network is destroyed first.
  virtual void dial(const Address& address, Duration timeout, Dialled on_dialled) = 0;
};

}  // namespace ringlet
