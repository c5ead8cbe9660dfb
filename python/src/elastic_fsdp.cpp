#include <ringlet/elastic_fsdp.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "callbacks.hpp"
#include "elastic_shards.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "interruptible.hpp"
#include "layouts.hpp"
#include "lock.hpp"
#include "optimizers.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

using nb::arg;
using Name = std::optional<std::string>;
using Norm = std::optional<double>;

/// An optimizer that Python has made, which stays one of Python's, too.
class OptimizerOfPython final : public Optimizer {
 public:
  explicit OptimizerOfPython(std::shared_ptr<Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}

  void apply_gradients(const Tree& gradients, const Tree& parameters) override { optimizer_->apply_gradients(gradients, parameters); }
  void init(const Tree& parameters) override { optimizer_->init(parameters); }
  Tree state() override { return optimizer_->state(); }
  std::size_t state_bytes() const override { return optimizer_->state_bytes(); }
  std::uint64_t step() const override { return optimizer_->step(); }
  void set_step(std::uint64_t step) override { optimizer_->set_step(step); }
  double learning_rate() const override { return optimizer_->learning_rate(); }
  void set_learning_rate(LearningRate rate) override { optimizer_->set_learning_rate(std::move(rate)); }

 private:
  const std::shared_ptr<Optimizer> optimizer_;
};

MakeOptimizer making(nb::object function) {
  return [kept = shared_object(std::move(function))]() -> std::unique_ptr<Optimizer> {
    return with_lock([&] { return std::make_unique<OptimizerOfPython>(nb::cast<OptimizerHandle&>((*kept)()).optimizer); });
  };
}

/// An ElasticFsdp or an ElasticFullyShard.
template <class Kind>
struct KindHandle : ShardsHandle {
  explicit KindHandle(const std::shared_ptr<Kind>& object, std::vector<ArrayView> views = {})
      : ShardsHandle(object, std::move(views)), kind(object) {}
  std::shared_ptr<Kind> shared() const { return kind.lock(); }

  std::weak_ptr<Kind> kind;  // its owner is `shards`
};
using FsdpHandle = KindHandle<ElasticFsdp>;
using FullyShardHandle = KindHandle<ElasticFullyShard>;

/// Calls a function of the shards that waits, as interruptible().
template <class Object, class Function>
auto waiting(const std::shared_ptr<Object>& object, Function function, std::vector<ArrayView> arrays) {
  return interruptible([object, function = std::move(function)]() mutable { return function(*object); }, std::move(arrays));
}

std::vector<ArrayView> joined(std::vector<ArrayView> arrays, const std::vector<ArrayView>& more) {
  arrays.insert(arrays.end(), more.begin(), more.end());
  return arrays;
}

void check_has_no_trainer(const ShardsHandle& handle, const char* call) {
  if (handle.has_trainer) refuse(std::string(call) + " of shards that an ElasticTrainer drives; it makes this call itself");
}

void add_to(nb::handle self, CheckpointHandle& checkpoint, const std::string& parameters, const std::string& optimizer) {
  auto& handle = nb::cast<ShardsHandle&>(self);
  check_has_no_trainer(handle, "add_to()");
  checkpoint.checkpoint = waiting(
      handle.shards.shared(),
      [filled = checkpoint.checkpoint, parameters, optimizer](ElasticShards& shards) mutable {
        shards.add_to(filled, parameters, optimizer);
        return std::move(filled);
      },
      handle.arrays);
  checkpoint.arrays.insert(checkpoint.arrays.end(), handle.arrays.begin(), handle.arrays.end());
  checkpoint.rows.push_back({nb::borrow(self), handle.generation});
}

void bind_shards(nb::module_& module) {
  Class<ShardsHandle>(module, "ElasticShards", "Sharded state that outlives the ranks that hold it.")
      .def(
          "enter",
          [](ShardsHandle& handle, GroupHandle& world) {
            check_has_no_trainer(handle, "enter()");
            ++handle.generation;
            return waiting(
                handle.shards.shared(), [group = world.get()](ElasticShards& shards) { return shards.enter(group); }, handle.arrays);
          },
          arg("world"))
      .def(
          "update", [](ShardsHandle& handle) { handle.shards->update(); }, nb::call_guard<WithoutLock>())
      .def("gather",
           [](ShardsHandle& handle) {
             waiting(
                 handle.shards.shared(),
                 [](ElasticShards& shards) {
                   shards.gather();
                   return true;
                 },
                 handle.arrays);
           })
      .def("add_to", &add_to, arg("checkpoint"), arg("parameters"), arg("optimizer"))
      .def(
          "loaded",
          [](ShardsHandle& handle, std::uint64_t step) {
            check_has_no_trainer(handle, "loaded()");
            ++handle.generation;
            waiting(
                handle.shards.shared(),
                [step](ElasticShards& shards) {
                  shards.loaded(step);
                  return true;
                },
                handle.arrays);
          },
          arg("step"))
      .def("forget", [](ShardsHandle& handle) { handle.shards->forget(); })
      .def("step", [](ShardsHandle& handle) { return handle.shards->step(); })
      .def("layout", [](ShardsHandle& handle) { return handle.shards->layout(); })
      .def("bytes_to_rebuild", [](ShardsHandle& handle) { return handle.shards->bytes_to_rebuild(); })
      .def("state_bytes", [](ShardsHandle& handle) { return handle.shards->state_bytes(); });
}

void bind_elastic_fsdp(nb::module_& module) {
  Class<FsdpHandle, ShardsHandle>(module, "ElasticFsdp", "FSDP's optimizer step over full parameters, in an elastic group.")
      .def(
          "__init__",
          [](FsdpHandle* handle, GroupHandle& world, const ArrayTree& parameters, nb::callable make, int copies, double weight,
             std::int64_t rebuild_size, std::int64_t size, Norm max_norm, const std::optional<Wire>& reduce_dtype, int stream) {
            const ElasticFsdpOptions options{.copies = copies,
                                             .shard_weight = weight,
                                             .rebuild_size = rebuild_size,
                                             .communication_size = size,
                                             .max_norm = max_norm,
                                             .reduce_dtype = reduce_dtype,
                                             .stream = options_of(stream, std::nullopt).stream};
            new (handle) FsdpHandle(std::make_shared<ElasticFsdp>(world.get(), parameters.tree(), making(std::move(make)), options),
                                    parameters.arrays());
          },
          arg("world"), arg("parameters"), arg("make_optimizer"), arg("copies"), arg("shard_weight"), arg("rebuild_size"),
          arg("communication_size"), arg("max_norm").none(), arg("reduce_dtype").none(), arg("stream"))
      .def(
          "average",
          [](FsdpHandle& handle, const ArrayTree& gradients, std::optional<double> share) {
            return waiting(
                handle.shared(),
                [tree = gradients.tree(), share](ElasticFsdp& fsdp) { return share ? fsdp.average(tree, *share) : fsdp.average(tree); },
                joined(gradients.arrays(), handle.arrays));
          },
          arg("gradients"), arg("share").none());
}

void bind_elastic_fully_shard(nb::module_& module) {
  Class<FullyShardHandle, ShardsHandle>(module, "ElasticFullyShard", "Parameters that are kept as shards, in an elastic group.")
      .def(
          "__init__",
          [](FullyShardHandle* handle, GroupHandle& world, nb::callable make, int copies, double weight, std::int64_t rebuild_size,
             const Name& compute_dtype, const std::optional<Wire>& reduce_dtype, Norm max_norm, int prefetch, int stream) {
            const ElasticFullyShardOptions options{.copies = copies,
                                                   .shard_weight = weight,
                                                   .rebuild_size = rebuild_size,
                                                   .compute_dtype = dtype_of(compute_dtype),
                                                   .reduce_dtype = reduce_dtype,
                                                   .max_norm = max_norm,
                                                   .prefetch = prefetch,
                                                   .stream = options_of(stream, std::nullopt).stream};
            new (handle) FullyShardHandle(std::make_shared<ElasticFullyShard>(world.get(), making(std::move(make)), options));
          },
          arg("world"), arg("make_optimizer"), arg("copies"), arg("shard_weight"), arg("rebuild_size"), arg("compute_dtype").none(),
          arg("reduce_dtype").none(), arg("max_norm").none(), arg("prefetch"), arg("stream"))
      .def(
          "add",
          [](FullyShardHandle& handle, std::string name, const ArrayTree& parameters) {
            return handle.shared()->add(std::move(name), parameters.tree());
          },
          arg("name"), arg("parameters"))
      .def("modules", [](FullyShardHandle& handle) { return handle.shared()->modules(); })
      .def("parameter_bytes", [](FullyShardHandle& handle) { return handle.shared()->parameter_bytes(); })
      .def(
          "forward",
          [](FullyShardHandle& handle, std::size_t number) {
            return UnshardedHandle{waiting(handle.shared(), [number](ElasticFullyShard& shard) { return shard.forward(number); }, {})};
          },
          arg("module"))
      .def(
          "backward",
          [](FullyShardHandle& handle, std::size_t number) {
            return UnshardedHandle{waiting(handle.shared(), [number](ElasticFullyShard& shard) { return shard.backward(number); }, {})};
          },
          arg("module"))
      .def(
          "reduce_gradients",
          [](FullyShardHandle& handle, std::size_t number, const ArrayTree& gradients) {
            waiting(
                handle.shared(),
                [number, tree = gradients.tree()](ElasticFullyShard& shard) {
                  shard.reduce_gradients(number, tree);
                  return true;
                },
                gradients.arrays());
          },
          arg("module"), arg("gradients"))
      .def("finish",
           [](FullyShardHandle& handle) { return waiting(handle.shared(), [](ElasticFullyShard& shard) { return shard.finish(); }, {}); })
      .def("set_share", [](FullyShardHandle& handle, double share) { handle.shared()->set_share(share); }, arg("share"));
}

}  // namespace

void bind_elastic_shards(nb::module_& module) {
  bind_shards(module);
  bind_elastic_fsdp(module);
  bind_elastic_fully_shard(module);
}

}  // namespace ringlet::python
