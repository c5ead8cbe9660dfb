#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/fsdp.hpp>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "callbacks.hpp"
#include "elastic_shards.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "held.hpp"
#include "interruptible.hpp"
#include "lock.hpp"
#include "optimizers.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

using nb::arg;
using Name = std::optional<std::string>;

std::shared_ptr<FsdpUpdater> make_updater(GroupHandle& group, nb::handle dp_group, std::int64_t communication_size,
                                          std::optional<double> max_norm, const std::optional<Wire>& reduce_dtype,
                                          std::vector<double> shard_weights, int stream) {
  FsdpOptions options{.communication_size = communication_size,
                      .max_norm = max_norm,
                      .reduce_dtype = reduce_dtype,
                      .shard_weights = std::move(shard_weights),
                      .stream = options_of(stream, std::nullopt).stream};
  if (!dp_group.is_none()) options.dp_group = nb::cast<GroupHandle&>(dp_group).get();
  return std::make_shared<FsdpUpdater>(group.get(), options);
}

struct UpdaterHandle {
  Held<FsdpUpdater> updater;
};

using Norm = std::optional<double>;

Norm apply_optimizer(UpdaterHandle& handle, const ArrayTree& gradients, const ArrayTree& parameters, OptimizerHandle& optimizer) {
  std::vector<ArrayView> arrays = gradients.arrays();
  arrays.insert(arrays.end(), parameters.arrays().begin(), parameters.arrays().end());
  return interruptible(
      [updater = handle.updater.shared(), own = optimizer.optimizer, g = gradients.tree(), p = parameters.tree()] {
        return updater->apply_gradients(g, p, [&](const Tree& shards, const Tree& rows) { own->apply_gradients(shards, rows); });
      },
      std::move(arrays));
}

/// Copies, which the program may keep: the memory of a step's shards is the updater's, or of the caller, and is used again or freed.
nb::list copies_of(const Tree& tree) {
  nb::list leaves;
  for (const Leaf& leaf : tree) leaves.append(nb::make_tuple(leaf.name, exported(Tensor::copy_of(leaf.values))));
  return leaves;
}

/// Calls Python for the step on shards, so it stays on the caller's thread. `function` returns the new rows, in the order of the old ones.
Norm apply_function(UpdaterHandle& handle, const ArrayTree& gradients, const ArrayTree& parameters, const nb::callable& function) {
  return calling_back([&] {
    return handle.updater->apply_gradients(gradients.tree(), parameters.tree(), [&](const Tree& shards, const Tree& rows) {
      call_python([&] {
        const nb::object after = function(copies_of(shards), copies_of(rows));
        std::size_t number = 0;
        for (const Leaf& leaf : rows) copy(ArrayView(after[number++], Access::read).readable(), leaf.values);
      });
    });
  });
}

struct ShardHandle {
  Held<FullyShard> shard;
};

std::shared_ptr<FullyShard> make_shard(GroupHandle& group, const Name& compute_dtype, const std::optional<Wire>& reduce_dtype,
                                       std::vector<double> shard_weights, int prefetch, int stream) {
  return std::make_shared<FullyShard>(group.get(), FullyShardOptions{.compute_dtype = dtype_of(compute_dtype),
                                                                     .reduce_dtype = reduce_dtype,
                                                                     .shard_weights = std::move(shard_weights),
                                                                     .prefetch = prefetch,
                                                                     .stream = options_of(stream, std::nullopt).stream});
}

void bind_updater(nb::module_& module) {
  Class<UpdaterHandle>(module, "FsdpUpdater", "FSDP's optimizer step over full parameters.")
      .def(
          "__init__",
          [](UpdaterHandle* handle, GroupHandle& group, nb::handle dp_group, std::int64_t size, Norm max_norm,
             const std::optional<Wire>& reduce_dtype, std::vector<double> weights, int stream) {
            new (handle) UpdaterHandle{Held(make_updater(group, dp_group, size, max_norm, reduce_dtype, std::move(weights), stream))};
          },
          arg("group"), arg("dp_group").none(), arg("communication_size"), arg("max_norm").none(), arg("reduce_dtype").none(),
          arg("shard_weights"), arg("stream"))
      .def("apply_optimizer", &apply_optimizer, arg("gradients"), arg("parameters"), arg("optimizer"))
      .def("apply_function", &apply_function, arg("gradients"), arg("parameters"), arg("function"))
      .def("layout", [](UpdaterHandle& handle) {
        const ShardLayout* layout = handle.updater->layout();
        return layout ? std::optional<ShardLayout>(*layout) : std::nullopt;
      });
}

void bind_fully_shard(nb::module_& module) {
  Class<UnshardedHandle>(module, "Unsharded", "A module's full parameters, as long as this object lives.")
      .def("parameters", [](nb::handle self) { return exported(nb::cast<UnshardedHandle&>(self).unsharded.parameters(), self); });
  Class<ShardHandle>(module, "FullyShard", "Parameters that are kept as shards.")
      .def(
          "__init__",
          [](ShardHandle* handle, GroupHandle& group, const Name& compute_dtype, const std::optional<Wire>& reduce_dtype,
             std::vector<double> weights, int prefetch, int stream) {
            new (handle) ShardHandle{Held(make_shard(group, compute_dtype, reduce_dtype, std::move(weights), prefetch, stream))};
          },
          arg("group"), arg("compute_dtype").none(), arg("reduce_dtype").none(), arg("shard_weights"), arg("prefetch"), arg("stream"))
      .def(
          "add",
          [](ShardHandle& handle, std::string name, const ArrayTree& parameters) {
            return interruptible([shard = handle.shard.shared(), name, tree = parameters.tree()] { return shard->add(name, tree); },
                                 parameters.arrays());
          },
          arg("name"), arg("parameters"))
      .def("modules", [](ShardHandle& handle) { return handle.shard->modules(); })
      .def(
          "forward",
          [](ShardHandle& handle, std::size_t number) {
            return UnshardedHandle{interruptible([shard = handle.shard.shared(), number] { return shard->forward(number); })};
          },
          arg("module"))
      .def(
          "backward",
          [](ShardHandle& handle, std::size_t number) {
            return UnshardedHandle{interruptible([shard = handle.shard.shared(), number] { return shard->backward(number); })};
          },
          arg("module"))
      .def(
          "reduce_gradients",
          [](ShardHandle& handle, std::size_t number, const ArrayTree& gradients) {
            interruptible(
                [shard = handle.shard.shared(), number, tree = gradients.tree()] {
                  shard->reduce_gradients(number, tree);
                  return true;
                },
                gradients.arrays());
          },
          arg("module"), arg("gradients"))
      .def("finish",
           [](ShardHandle& handle) {
             interruptible([shard = handle.shard.shared()] {
               shard->finish();
               return true;
             });
           })
      .def(
          "step",
          [](ShardHandle& handle, OptimizerHandle& optimizer) {
            const WithoutLock unlocked;
            optimizer.optimizer->apply_gradients(handle.shard->gradients(), handle.shard->parameters());
          },
          arg("optimizer"), "Has an optimizer take its step on this rank's shards.")
      .def("parameters", [](nb::handle self) { return exported(nb::cast<ShardHandle&>(self).shard->parameters(), self); })
      .def("gradients", [](nb::handle self) { return exported(nb::cast<ShardHandle&>(self).shard->gradients(), self); })
      .def("layout", [](ShardHandle& handle) { return handle.shard->layout(); });
}

}  // namespace

void bind_fsdp(nb::module_& module) {
  Class<ShardLayout>(module, "ShardLayout", "How the tensors of a tree are split over ranks, each along its axis 0.")
      .def(
          "__init__",
          [](ShardLayout* layout, nb::handle full, int ranks, const std::vector<double>& weights) {
            const nb::object tree = nb::module_::import_("ringlet.trees").attr("tree_to_read")(full);
            new (layout) ShardLayout(nb::cast<const ArrayTree&>(tree).tree(), ranks, weights);
          },
          arg("full"), arg("ranks"), arg("weights") = std::vector<double>(),
          nb::sig("def __init__(self, full: object, ranks: int, weights: collections.abc.Sequence[float] = ()) -> None"))
      .def("ranks", &ShardLayout::ranks)
      .def(
          "rows",
          [](const ShardLayout& layout, const std::string& name, int rank) {
            const RowRange rows = layout.rows(name, rank);
            return nb::make_tuple(rows.begin, rows.end);
          },
          arg("name"), arg("rank"), nb::sig("def rows(self, name: str, rank: int) -> tuple[int, int]"),
          "The first row of a tensor that belongs to a rank, and one past the last.")
      .def(
          "count", [](const ShardLayout& layout, int rank) { return layout.count(rank); }, arg("rank"),
          nb::sig("def count(self, rank: int) -> int"), "The number of elements of all tensors' parts at a rank.");
  bind_updater(module);
  bind_fully_shard(module);
}

}  // namespace ringlet::python
