#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/fsdp.hpp>
#include <ringlet/gradients.hpp>
#include <ringlet/optimizers.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "held.hpp"
#include "interruptible.hpp"
#include "lock.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

AverageOptions average_options(std::int64_t all_reduce_size, std::optional<std::int64_t> first_bucket_size,
                               const std::optional<Wire>& communication_type, std::optional<double> weight, int stream) {
  return {.all_reduce_size = all_reduce_size,
          .first_bucket_size = first_bucket_size,
          .communication_type = communication_type,
          .weight = weight,
          .stream = options_of(stream, std::nullopt).stream};
}

void average(GroupHandle& handle, const ArrayTree& gradients, std::int64_t all_reduce_size, std::optional<std::int64_t> first_bucket_size,
             const std::optional<Wire>& communication_type, std::optional<double> weight, int stream) {
  const AverageOptions options = average_options(all_reduce_size, first_bucket_size, communication_type, weight, stream);
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

/// A GradientAverager or a GradientBucketer, and the arrays that it borrows.
template <class Object>
struct AveragerHandle {
  std::vector<ArrayView> arrays;
  Held<Object> averager;  // declared last: its end waits for what still uses the arrays

  void finish() {
    interruptible(
        [own = averager.shared()] {
          own->finish();
          return true;
        },
        arrays);
  }
};
using Averager = AveragerHandle<GradientAverager>;
using Bucketer = AveragerHandle<GradientBucketer>;

void bind_averagers(nb::module_& module) {
  using nb::arg;
  Class<Averager>(module, "GradientAverager", "Averages gradients while they are still being computed.")
      .def(
          "__init__",
          [](Averager* handle, GroupHandle& group, std::int64_t size, std::optional<std::int64_t> first, const std::optional<Wire>& type,
             std::optional<double> weight, int stream) {
            new (handle)
                Averager{{}, Held(std::make_shared<GradientAverager>(group.get(), average_options(size, first, type, weight, stream)))};
          },
          arg("group"), arg("all_reduce_size"), arg("first_bucket_size").none(), arg("communication_type").none(), arg("weight").none(),
          arg("stream"))
      .def(
          "add",
          [](Averager& handle, const ArrayView& gradient) {
            handle.arrays.push_back(gradient);
            const WithoutLock unlocked;
            handle.averager->add(gradient.writable());
          },
          arg("gradient"))
      .def("finish",
           [](Averager& handle) {
             handle.finish();
             handle.arrays.clear();
           })
      .def(
          "set_weight", [](Averager& handle, std::optional<double> weight) { handle.averager->set_weight(weight); }, arg("weight").none())
      .def("collectives", [](Averager& handle) { return handle.averager->collectives(); });
  Class<Bucketer>(module, "GradientBucketer", "Averages gradients while the backward pass computes them, in any order.")
      .def(
          "__init__",
          [](Bucketer* handle, GroupHandle& group, const ArrayTree& gradients, std::int64_t size, std::optional<std::int64_t> first,
             const std::optional<Wire>& type, std::optional<double> weight, int stream, bool allow_missing) {
            const BucketerOptions options{.average = average_options(size, first, type, weight, stream), .allow_missing = allow_missing};
            auto made = interruptible(
                [of = group.get(), tree = gradients.tree(), options] { return std::make_shared<GradientBucketer>(of, tree, options); },
                gradients.arrays());
            new (handle) Bucketer{gradients.arrays(), Held(std::move(made))};
          },
          arg("group"), arg("gradients"), arg("all_reduce_size"), arg("first_bucket_size").none(), arg("communication_type").none(),
          arg("weight").none(), arg("stream"), arg("allow_missing"))
      .def(
          "ready",
          [](Bucketer& handle, const std::string& name) {
            const WithoutLock unlocked;
            handle.averager->ready(std::string_view(name));
          },
          arg("name"))
      .def("finish", &Bucketer::finish)
      .def("averaged",
           [](Bucketer& handle) {
             nb::list names;
             for (const Leaf& leaf : handle.averager->averaged()) names.append(leaf.name);
             return names;
           })
      .def(
          "set_weight", [](Bucketer& handle, std::optional<double> weight) { handle.averager->set_weight(weight); }, arg("weight").none())
      .def("collectives", [](Bucketer& handle) { return handle.averager->collectives(); });
}

}  // namespace

ArrayTree::ArrayTree(const nb::list& leaves, Access access) {
  for (const nb::handle pair : leaves) {
    const nb::tuple leaf = nb::cast<nb::tuple>(pair);
    ArrayView& view = arrays_.emplace_back(leaf[1], access);
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
  Class<ArrayTree>(module, "Tree", "Named arrays, for the calls that take whole trees.")
      .def(
          "__init__",
          [](ArrayTree* tree, const nb::list& leaves, bool write) { new (tree) ArrayTree(leaves, write ? Access::write : Access::read); },
          arg("leaves"), arg("write") = false);
  Class<Wire>(module, "Wire", "How real arrays cross the network when they are averaged.")
      .def(
          "__init__",
          [](Wire* wire, const std::string& name, bool feedback, std::size_t least_elements) {
            const auto found = find_wire(name, {.feedback = feedback, .least_elements = least_elements});
            if (!found) refuse("'" + name + "' is no type of communication; f16, bf16, int8 and int4 are possible");
            new (wire) Wire(*found);
          },
          arg("name"), arg("feedback"), arg("least_elements"))
      .def_static(
          "of_dtype", [](const std::string& dtype) { return Wire(*dtype_of(dtype)); }, arg("dtype"),
          "Any dtype, for FSDP, which says which it takes.");
  bind_averagers(module);
  define(module, "average_gradients", &average, arg("group"), arg("gradients"), arg("all_reduce_size"), arg("first_bucket_size").none(),
         arg("communication_type").none(), arg("weight").none(), arg("stream"), "Averages gradients in place.");
  define(
      module, "clip_grad_norm",
      [](const ArrayTree& gradients, double max_norm) {
        const WithoutLock unlocked;
        return clip_grad_norm(gradients.tree(), max_norm);
      },
      arg("gradients"), arg("max_norm"), "Scales gradients in place, and returns their norm before.");
  define(module, "clip_grad_norm_sharded", &clip_sharded, arg("group"), arg("gradients"), arg("max_norm"), arg("stream"),
         "Scales sharded gradients in place, and returns the norm of all ranks' before.");
}

}  // namespace ringlet::python
