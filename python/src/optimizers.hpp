#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <ringlet/optimizers.hpp>

namespace ringlet::python {

/// An optimizer, as Python holds it.
struct OptimizerHandle {
  std::shared_ptr<Optimizer> optimizer;
};

}  // namespace ringlet::python
