#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/result.hpp"
#include "core/ports/link.hpp"

namespace ringlet {

enum class LinkSide : std::uint8_t { dialler, acceptor };

/// A faster way between two ranks that stand close to each other than the link over which they met. Both sides must agree to look for one:
/// the dialler asks for it where offers() says so, and both then call take(). Belongs to the loop's thread.
class Shortcut {
 public:
  /// Runs exactly once, from the loop. Starts the link, or drops it, before it returns.
  using Taken = std::function<void(Result<std::unique_ptr<Link>>)>;

  virtual ~Shortcut() = default;
  /// Whether it may be worth asking for on this link.
  virtual bool offers(const Link& link) const = 0;
  /// Finds out together with the other side whether there is a shortcut. `taken` gets the link to go on with, which is the same one where
  /// there is none, or why the link is lost. Reads exactly what belongs to it. Dropped without a call if this object goes first.
  virtual void take(std::unique_ptr<Link> link, LinkSide side, Taken taken) = 0;
};

}  // namespace ringlet
