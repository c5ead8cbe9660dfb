#pragma once

#include <memory>
#include <utility>

#include "core/ports/event_loop.hpp"

namespace ringlet {

/// Destroys these objects after the current callback has returned, since one of them may be the caller of that callback.
template <class... Objects>
void release_later(EventLoop& loop, std::unique_ptr<Objects>... objects) {
  loop.defer([... released = std::shared_ptr<Objects>(std::move(objects))] {});
}

}  // namespace ringlet
