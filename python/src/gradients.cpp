#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <ringlet/fsdp.hpp>
#include <ringlet/gradients.hpp>
#include <ringlet/optimizers.hpp>
#include <string>

#include "errors.hpp"
#include "group.hpp"
#include "interruptible.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

void average(GroupHandle& handle, const ArrayTree& gradients, std::int64_t all_reduce_size, std::optional<std::int64_t> first_bucket_size,
             const std::optional<std::string>& communication_type, std::optional<double> weight, int stream) {
  const AverageOptions options{.all_reduce_size = all_reduce_size,
                               .first_bucket_size = first_bucket_size,
                               .communication_type = dtype_of(communication_type),
                               .weight = weight,
                               .stream = options_of(stream, std::nullopt).stream};
  interruptible(
      [group = handle.get(), tree = gradients.tree(), options] {
        average_gradients(group, tree, options);
        return true;
      },
      gradients.arrays());
}

double clip_sharded(GroupHandle& handle, const ArrayTree& gradients, double max_norm, int stream) {
  return interruptible(
      [group = handle.get(), tree = gradients.tree(), max_norm, options = options_of(stream, std::nullopt)] {
        return clip_grad_norm_sharded(group, tree, max_norm, options.stream);
      },
      gradients.arrays());
}

}  // namespace

ArrayTree::ArrayTree(const nb::list& leaves, Access access) {
  for (const nb::handle pair : leaves) {
    const nb::tuple leaf = nb::cast<nb::tuple>(pair);
    const ArrayView& view = arrays_.emplace_back(leaf[1], access);
    tree_.add(nb::cast<std::string>(leaf[0]), view.leaf());
  }
}

nb::list exported(const Tree& tree, nb::handle owner) {
  nb::list leaves;
  for (const Leaf& leaf : tree) leaves.append(nb::make_tuple(leaf.name, exported(leaf.values, owner)));
  return leaves;
}

std::optional<DType> dtype_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const std::optional<DType> dtype = find_dtype(*name);
  if (!dtype) refuse("'" + *name + "' is no dtype");
  return dtype;
}

void bind_gradients(nb::module_& module) {
  using nb::arg;
  nb::class_<ArrayTree>(module, "Tree", "Named arrays, for the calls that take whole trees.")
      .def(
          "__init__",
          [](ArrayTree* tree, const nb::list& leaves, bool write) { new (tree) ArrayTree(leaves, write ? Access::write : Access::read); },
          arg("leaves"), arg("write") = false);
  module.def("average_gradients", &average, arg("group"), arg("gradients"), arg("all_reduce_size"), arg("first_bucket_size").none(),
             arg("communication_type").none(), arg("weight").none(), arg("stream"), "Averages gradients in place.");
  module.def(
      "clip_grad_norm", [](const ArrayTree& gradients, double max_norm) { return clip_grad_norm(gradients.tree(), max_norm); },
      arg("gradients"), arg("max_norm"), nb::call_guard<nb::gil_scoped_release>(),
      "Scales gradients in place, and returns their norm before.");
  module.def("clip_grad_norm_sharded", &clip_sharded, arg("group"), arg("gradients"), arg("max_norm"), arg("stream"),
             "Scales sharded gradients in place, and returns the norm of all ranks' before.");
}

}  // namespace ringlet::python
