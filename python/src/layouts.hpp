#pragma once

#include <ringlet/checkpoint.hpp>
#include <ringlet/sharding.hpp>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace ringlet::python {

/// A checkpoint, and the arrays that it has been given, which it keeps alive.
struct CheckpointHandle {
  Checkpoint checkpoint;
  std::vector<ArrayView> arrays;
};

}  // namespace ringlet::python
