#pragma once

#include <ringlet/average_options.hpp>
#include <ringlet/group.hpp>

#include "core/gradients/averager.hpp"
#include "native/procedure_driver.hpp"
#include "native/shared_group.hpp"

namespace ringlet::native {

/// The averages of gradients in one world.
struct WorldAverages {
  /// `residuals`, which outlives this object, is kept from one world to the next.
  WorldAverages(const Group& group, const AverageOptions& options, Residuals& residuals)
      : averager(group.shared().options(), options, Averager::kUnbounded, &residuals), driver({group}, options.stream) {}
  Averager averager;
  ProcedureDriver driver;  // declared last: its destructor waits for the collectives that use the averager's buckets
};

}  // namespace ringlet::native
