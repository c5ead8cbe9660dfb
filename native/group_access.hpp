#pragma once

#include <ringlet/group.hpp>

#include "core/base/result.hpp"
#include "core/engine/collective.hpp"
#include "simd/kernels.hpp"

namespace ringlet::native {

class SharedGroup;

/// What the library's own parts may see of a group.
struct GroupAccess {
  static const simd::Kernels& kernels(const Group& group);
  static SharedGroup& shared(const Group& group);
  static Work start(const Group& group, const CallOptions& call, Result<CollectiveTask> task);
};

}  // namespace ringlet::native
