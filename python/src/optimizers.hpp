#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <ringlet/optimizers.hpp>

namespace ringlet::python {

namespace nb = nanobind;

/// An optimizer, as Python holds it.
struct OptimizerHandle {
  std::shared_ptr<Optimizer> optimizer;
};

/// A number, a schedule of the library's, or a function of Python's.
LearningRate rate_of(nb::handle object);

}  // namespace ringlet::python
