#pragma once

#include <memory>
#include <utility>

#include "core/ports/event_loop.hpp"

namespace ringlet {

/// Destroys the object after the current callback has returned, since it may be the caller of that callback.
template <class Object>
void release_later(EventLoop& loop, std::unique_ptr<Object> object) {
  loop.defer([released = std::shared_ptr<Object>(std::move(object))] {});
}

}  // namespace ringlet
