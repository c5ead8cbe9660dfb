#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "lock.hpp"

namespace ringlet::python {

namespace nb = nanobind;

/// An object of the library's whose end may wait for operations, as a Python object holds it: the interpreter's lock is free meanwhile. A
/// call that was interrupted may still share the object.
template <class Object>
class Held {
 public:
  explicit Held(std::shared_ptr<Object> object) : object_(std::move(object)) {}
  Held(Held&&) noexcept = default;
  Held& operator=(Held&&) = delete;
  ~Held() {
    if (!object_) return;
    const WithoutLock unlocked;
    object_.reset();
  }

  const std::shared_ptr<Object>& shared() const { return object_; }
  Object* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<Object> object_;
};

}  // namespace ringlet::python
