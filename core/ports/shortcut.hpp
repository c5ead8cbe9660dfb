#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/result.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

enum class LinkSide : std::uint8_t { dialler, acceptor };

/// A faster way between two ranks, such as two processes of one machine, than the link over which they met. The dialler asks for it in its
/// request where offers() says so, and both sides then call take(). Belongs to the loop's thread.
class Shortcut {
 public:
  /// Runs exactly once, from the loop. It starts the link before it returns, or destroys it.
  using Taken = std::function<void(Result<std::unique_ptr<Link>>)>;

  virtual ~Shortcut() = default;
  /// Whether a shortcut may exist for this link, so that the dialler should ask for it.
  virtual bool offers(const Link& link) const = 0;
  /// Finds out together with the other side whether there is a shortcut, and reads only the bytes of that conversation. `taken` gets the
  /// link to go on with, which is the same one where there is no shortcut, or the reason why the link was lost. Destroying this object
  /// drops `taken` without a call.
  virtual void take(std::unique_ptr<Link> link, LinkSide side, Taken taken) = 0;
};

}  // namespace ringlet
