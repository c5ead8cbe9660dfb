#pragma once

#include <nanobind/nanobind.h>

namespace ringlet::python {

namespace nb = nanobind;

void bind_trace(nb::module_& module);

}  // namespace ringlet::python
