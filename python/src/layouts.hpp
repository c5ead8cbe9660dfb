#pragma once

#include <cstdint>
#include <ringlet/checkpoint.hpp>
#include <ringlet/sharding.hpp>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace ringlet::python {

/// A checkpoint, and what it has been given, which it keeps alive.
struct CheckpointHandle {
  /// An ElasticShards that has added its rows, and in which memory.
  struct Rows {
    nb::object owner;
    std::uint64_t generation;
  };

  Checkpoint checkpoint;
  std::vector<ArrayView> arrays;
  std::vector<Rows> rows;
};

}  // namespace ringlet::python
