#include <ringlet/checkpoint.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "elastic_shards.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "interruptible.hpp"
#include "layouts.hpp"
#include "trees.hpp"

namespace ringlet::python {
namespace {

using nb::arg;
using Step = std::optional<std::uint64_t>;

void keep(CheckpointHandle& handle, const ArrayTree& tree) {
  handle.arrays.insert(handle.arrays.end(), tree.arrays().begin(), tree.arrays().end());
}

/// The shards whose memory the checkpoint uses, for a call that may go on by itself. Throws where that memory is not what it was.
std::vector<std::shared_ptr<ElasticShards>> shards_of(const CheckpointHandle& handle) {
  std::vector<std::shared_ptr<ElasticShards>> all;
  for (const auto& [owner, generation] : handle.rows) {
    const auto& shards = nb::cast<const ShardsHandle&>(owner);
    if (shards.generation != generation)
      refuse("the checkpoint has rows as they were before enter(), loaded() or a trainer; make a new one for add_to()");
    all.push_back(shards.shards.shared());
  }
  return all;
}

nb::dict save(GroupHandle& group, const std::string& directory, const CheckpointHandle& handle, std::uint64_t step, int keep_count,
              int stream, std::optional<double> timeout) {
  const CallOptions call = options_of(stream, timeout);
  const SaveOptions options{.step = step, .keep = keep_count, .stream = call.stream, .timeout = call.timeout};
  const SaveReport report = interruptible([of = group.get(), directory, checkpoint = handle.checkpoint, kept = shards_of(handle),
                                           options] { return save_checkpoint(of, directory, checkpoint, options); },
                                          handle.arrays);
  nb::dict said;
  said["path"] = report.path.string();
  said["bytes"] = report.bytes;
  said["total_bytes"] = report.total_bytes;
  return said;
}

LoadOptions load_options(Step step, int stream, std::optional<double> timeout) {
  const CallOptions call = options_of(stream, timeout);
  return {.step = step, .stream = call.stream, .timeout = call.timeout};
}

Step load(GroupHandle& group, const std::string& directory, CheckpointHandle& handle, Step step, int stream,
          std::optional<double> timeout) {
  auto [loaded, checkpoint] = interruptible(
      [of = group.get(), directory, checkpoint = handle.checkpoint, kept = shards_of(handle),
       options = load_options(step, stream, timeout)]() mutable {
        const Step found = load_checkpoint(of, directory, checkpoint, options);
        return std::pair(found, std::move(checkpoint));
      },
      handle.arrays);
  handle.checkpoint = std::move(checkpoint);
  return loaded;
}

Step latest(GroupHandle& group, const std::string& directory, Step step, int stream, std::optional<double> timeout) {
  return interruptible([of = group.get(), directory, options = load_options(step, stream, timeout)] {
           return std::optional<Step>(latest_checkpoint(of, directory, options));
         })
      .value();
}

}  // namespace

void bind_checkpoints(nb::module_& module) {
  Class<CheckpointHandle> checkpoint(module, "Checkpoint", "What is saved or loaded: arrays, which are kept alive, and values.");
  checkpoint.def("__init__", [](CheckpointHandle* handle) { new (handle) CheckpointHandle(); })
      .def(
          "add",
          [](CheckpointHandle& handle, const std::string& name, const ArrayTree& tree) {
            handle.checkpoint.add(name, tree.tree());
            keep(handle, tree);
          },
          arg("name"), arg("tensors"))
      .def(
          "add_sharded",
          [](CheckpointHandle& handle, const std::string& name, const ArrayTree& tree, const ShardLayout& layout) {
            handle.checkpoint.add_sharded(name, tree.tree(), layout);
            keep(handle, tree);
          },
          arg("name"), arg("shards"), arg("layout"))
      .def(
          "add_slots",
          [](CheckpointHandle& handle, const std::string& name, const ArrayTree& tree, const ShardLayout& layout) {
            handle.checkpoint.add_slots(name, tree.tree(), layout);
            keep(handle, tree);
          },
          arg("name"), arg("slots"), arg("layout"));
  bind_values(checkpoint);
  define(module, "save_checkpoint", &save, arg("group"), arg("directory"), arg("checkpoint"), arg("step"), arg("keep"), arg("stream"),
         arg("timeout").none());
  define(module, "load_checkpoint", &load, arg("group"), arg("directory"), arg("checkpoint"), arg("step").none(), arg("stream"),
         arg("timeout").none());
  define(module, "latest_checkpoint", &latest, arg("group"), arg("directory"), arg("step").none(), arg("stream"), arg("timeout").none());
}

}  // namespace ringlet::python
