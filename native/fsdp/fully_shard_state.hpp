#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <ringlet/fsdp.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/refuse.hpp"
#include "core/sharding/shard_moves.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

/// A module's full parameters, or the gather that fetches them.
struct FullyShard::Gathered {
  std::vector<Tensor> memory;
  Tree parameters;
  std::vector<Work> works;  // declared after the memory, so that they end before it is freed
};

struct FullyShard::State {
  /// One module's tensors. Their names are those within the module.
  struct Module {
    Module(std::string n, const Tree& full, int ranks, std::span<const double> weights)
        : name(std::move(n)),
          outline(
              full.map([](const std::string&, const TensorView& values) { return TensorView(nullptr, values.dtype(), values.shape()); })),
          layout(full, ranks, weights) {}

    std::string name;
    Tree outline;
    ShardLayout layout;
    std::vector<Tensor> shard_memory, gradient_memory;
    Tree shards, gradients;
    std::vector<ShardBucket> gathers, reductions;
    std::vector<Work> reducing;
    bool given = false;  // whether this step's gradients were given
    ShardResiduals own_residuals;
    ShardResiduals* lent_residuals = nullptr;  // in place of its own; their owner commits them
    ShardResiduals& residuals() { return lent_residuals != nullptr ? *lent_residuals : own_residuals; }
    std::weak_ptr<Gathered> gathered;
  };

  State(Group g, const FullyShardOptions& o) : group(std::move(g)), options(o), mover(group.shared().options()) {}

  Work start(Result<CollectiveTask> task) const { return group.shared().start({.stream = options.stream}, std::move(task)); }
  Module& module(std::size_t index) {
    if (index >= modules.size()) refuse(fmt::format("there is no module {}; {} were added", index, modules.size()));
    return *modules[index];
  }
  std::shared_ptr<Gathered> start_gather(Module& module);
  void finish_gather(Module& module, Gathered& gathered);
  Unsharded use(std::size_t index, int direction);
  void finish_reduction(Module& module);
  /// Adds a module that has its shards.
  std::size_t take(std::unique_ptr<Module> module);

  Group group;
  const FullyShardOptions options;
  ShardMover mover;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::shared_ptr<Gathered>> ahead;  // by module: those gathered before they are used
  std::deque<Module*> reducing;                  // modules whose gradients are under way, the oldest first
  Tree parameters, gradients;
};

}  // namespace ringlet
