#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>

#include "group.hpp"

namespace nb = nanobind;
namespace mx = mlx::core;

namespace {

mx::distributed::Group group_of(nb::handle capsule) {
  if (!PyCapsule_IsValid(capsule.ptr(), RINGLET_SHARE_CAPSULE))
    throw nb::type_error("ringlet and ringlet-mlx are of different versions; install the two that were released together");
  auto* share = static_cast<ringlet_share*>(PyCapsule_GetPointer(capsule.ptr(), RINGLET_SHARE_CAPSULE));
  return mx::distributed::Group(std::make_shared<ringlet_mlx::Group>(ringlet_mlx::copy_of(*share)));
}

bool await_messages(double seconds) {
  return ringlet_mlx::await_messages(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
}

}  // namespace

NB_MODULE(_group, module) {
  module.doc() = "The part of the package ringlet_mlx that is compiled.";
  nb::set_leak_warnings(false);
  nb::module_::import_("mlx.core");
  if (!nb::type<mx::distributed::Group>().is_valid())
    throw nb::import_error("this ringlet-mlx, built with MLX " MLX_BUILT_WITH
                           ", does not share classes with the installed MLX, which was made by another nanobind or for another Python");
  module.def("group", &group_of, nb::arg("share"), nb::sig("def group(share: object) -> mlx.core.distributed.Group"),
             "MLX's group for the share of a group of Ringlet's.");
  module.def("await_messages", &await_messages, nb::arg("seconds"), nb::call_guard<nb::gil_scoped_release>(),
             "Waits until all that was sent is received, and returns whether it is.");
}
