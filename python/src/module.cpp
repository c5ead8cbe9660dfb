#include <nanobind/nanobind.h>

#include "arrays.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "trace.hpp"
#include "trees.hpp"
#include "works.hpp"

NB_MODULE(_ringlet, module) {
  module.doc() = "The part of the package ringlet that is compiled.";
  module.attr("version") = RINGLET_VERSION;
  // At exit objects may still be referenced by others, which is no leak of this module's.
  nanobind::set_leak_warnings(false);
  ringlet::python::bind_errors(module);
  ringlet::python::bind_arrays(module);
  ringlet::python::bind_works(module);
  ringlet::python::bind_group(module);
  ringlet::python::bind_init(module);
  ringlet::python::bind_gradients(module);
  ringlet::python::bind_optimizers(module);
  ringlet::python::bind_fsdp(module);
  ringlet::python::bind_checkpoints(module);
  ringlet::python::bind_elastic_shards(module);
  ringlet::python::bind_elastic(module);
  ringlet::python::bind_outer(module);
  ringlet::python::bind_trace(module);
}
