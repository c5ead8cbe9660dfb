#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <ringlet/optimizers.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "core/elastic/state_sync.hpp"
#include "core/sharding/fsdp_step.hpp"

namespace ringlet::browser {

/// Any optimizer of ringlet/optimizers.hpp that treats each element by itself.
using AnyOptimizer = ringlet::detail::ElementwiseOptimizer;

/// The FSDP step of some groups, and whether it is under way.
struct Fsdp {
  std::shared_ptr<Agreements> agreements;  // must outlive the step
  std::shared_ptr<FsdpStep> step;
  std::vector<int32_t> groups;  // handles
  bool busy = false;
};

/// The trees, optimizers, FSDP objects and handings over of state that JavaScript holds. Handles are never reused.
class Objects {
 public:
  using Object = std::variant<std::shared_ptr<Tree>, std::shared_ptr<AnyOptimizer>, std::shared_ptr<Fsdp>, std::shared_ptr<StateSync>>;

  int32_t add(Object object) {
    objects_.emplace(++last_handle_, std::move(object));
    return last_handle_;
  }
  /// Returns null if the handle is unknown, or belongs to another kind of object.
  template <class Kind>
  std::shared_ptr<Kind> find(int32_t handle) const {
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    const auto* object = std::get_if<std::shared_ptr<Kind>>(&found->second);
    return object == nullptr ? nullptr : *object;
  }
  bool remove(int32_t handle) { return objects_.erase(handle) != 0; }

 private:
  int32_t last_handle_ = 0;
  std::map<int32_t, Object> objects_;
};

}  // namespace ringlet::browser
