#pragma once

#include <ringlet/average_options.hpp>
#include <ringlet/group.hpp>

#include "core/gradients/averager.hpp"
#include "native/procedure_driver.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

/// The averages of gradients in one world.
struct WorldAverages {
  WorldAverages(const Group& group, const AverageOptions& options)
      : averager(group.shared().options(), options), driver({group}, options.stream) {}
  Averager averager;
  ProcedureDriver driver;  // declared last: its destructor waits for the collectives that use the averager's buckets
};

}  // namespace ringlet::native
