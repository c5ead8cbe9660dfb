#include <ringlet/group.hpp>

#include "core/engine/requests.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

using native::Packing;

/// Runs what `make` makes of the packed arguments.
template <class Make>
void run(native::SharedGroup& group, const CallOptions& options, Make make) {
  Packing packing;
  group.run(options, make(packing, group.options()));
  packing.write_back();
}

template <class Make>
Work start(native::SharedGroup& group, const CallOptions& options, Make make) {
  Packing packing;
  auto task = make(packing, group.options());
  return group.start(options, std::move(task), std::move(packing));
}

}  // namespace

int Group::rank() const noexcept { return shared_->options().rank; }
int Group::size() const noexcept { return shared_->options().size; }
int Group::guests() const noexcept { return shared_->options().guests; }

void Group::all_reduce(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_reduce(op, packing.read(input), packing.write(output), 1.0, world);
  });
}
Work Group::all_reduce_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_reduce(op, packing.read(input), packing.write(output), 1.0, world);
  });
}

void Group::all_mean(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options,
      [&](Packing& packing, const WorldOptions& world) { return make_all_mean(packing.read(input), packing.write(output), world); });
}
Work Group::all_mean_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_mean(packing.read(input), packing.write(output), world);
  });
}

void Group::reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_reduce_scatter(op, packing.read(input), packing.write(output), world);
  });
}
Work Group::reduce_scatter_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_reduce_scatter(op, packing.read(input), packing.write(output), world);
  });
}

void Group::all_gather(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options,
      [&](Packing& packing, const WorldOptions& world) { return make_all_gather(packing.read(input), packing.write(output), world); });
}
Work Group::all_gather_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_gather(packing.read(input), packing.write(output), world);
  });
}

void Group::reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                             const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_reduce_scatter_v(op, packing.read(input), packing.write(output), counts, world);
  });
}
Work Group::reduce_scatter_v_async(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                   const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_reduce_scatter_v(op, packing.read(input), packing.write(output), counts, world);
  });
}

void Group::all_gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_gather_v(packing.read(input), packing.write(output), counts, world);
  });
}
Work Group::all_gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_gather_v(packing.read(input), packing.write(output), counts, world);
  });
}

void Group::reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_reduce(op, packing.read(input), world.rank == root ? packing.write(output) : output, root, world);
  });
}
Work Group::reduce_async(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_reduce(op, packing.read(input), world.rank == root ? packing.write(output) : output, root, world);
  });
}

void Group::gather(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_gather(packing.read(input), world.rank == root ? packing.write(output) : output, root, world);
  });
}
Work Group::gather_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_gather(packing.read(input), world.rank == root ? packing.write(output) : output, root, world);
  });
}

void Group::gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_gather_v(packing.read(input), world.rank == root ? packing.write(output) : output, counts, root, world);
  });
}
Work Group::gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                           const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_gather_v(packing.read(input), world.rank == root ? packing.write(output) : output, counts, root, world);
  });
}

void Group::scatter(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_scatter(world.rank == root ? packing.read(input) : input, packing.write(output), root, world);
  });
}
Work Group::scatter_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_scatter(world.rank == root ? packing.read(input) : input, packing.write(output), root, world);
  });
}

void Group::scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                      const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_scatter_v(world.rank == root ? packing.read(input) : input, packing.write(output), counts, root, world);
  });
}
Work Group::scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                            const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_scatter_v(world.rank == root ? packing.read(input) : input, packing.write(output), counts, root, world);
  });
}

void Group::all_to_all(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options,
      [&](Packing& packing, const WorldOptions& world) { return make_all_to_all(packing.read(input), packing.write(output), world); });
}
Work Group::all_to_all_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_to_all(packing.read(input), packing.write(output), world);
  });
}

void Group::all_to_all_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                         std::span<const std::int64_t> receive_counts, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_to_all_v(packing.read(input), packing.write(output), send_counts, receive_counts, world);
  });
}
Work Group::all_to_all_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                               std::span<const std::int64_t> receive_counts, const CallOptions& options) {
  return start(*shared_, options, [&](Packing& packing, const WorldOptions& world) {
    return make_all_to_all_v(packing.read(input), packing.write(output), send_counts, receive_counts, world);
  });
}

void Group::broadcast(TensorView values, int root, const CallOptions& options) {
  run(*shared_, options, [&](Packing& packing, const WorldOptions& world) { return make_broadcast(packing.update(values), root, world); });
}
Work Group::broadcast_async(TensorView values, int root, const CallOptions& options) {
  return start(*shared_, options,
               [&](Packing& packing, const WorldOptions& world) { return make_broadcast(packing.update(values), root, world); });
}

void Group::barrier(const CallOptions& options) { shared_->run(options, make_barrier(shared_->options())); }
Work Group::barrier_async(const CallOptions& options) { return shared_->start(options, make_barrier(shared_->options())); }

void Group::send(ConstTensorView values, int destination, const CallOptions& options) {
  Packing packing;
  shared_->run_send(options, make_send(packing.read(values), destination, shared_->options()));
  packing.write_back();
}
Work Group::send_async(ConstTensorView values, int destination, const CallOptions& options) {
  Packing packing;
  auto task = make_send(packing.read(values), destination, shared_->options());
  return shared_->start_send(options, std::move(task), std::move(packing));
}

void Group::recv(TensorView values, int source, const CallOptions& options) {
  Packing packing;
  shared_->run_receive(options, make_receive(packing.write(values), source, shared_->options()));
  packing.write_back();
}
Work Group::recv_async(TensorView values, int source, const CallOptions& options) {
  Packing packing;
  auto task = make_receive(packing.write(values), source, shared_->options());
  return shared_->start_receive(options, std::move(task), std::move(packing));
}

std::optional<Group> Group::split(int color, int key, const CallOptions& options) const {
  auto part = shared_->split(options, color, key);
  return part ? std::optional<Group>(Group(std::move(part))) : std::nullopt;
}

std::string_view Group::links() const { return shared_->links(); }

std::vector<LinkInfo> Group::link_info() const { return shared_->link_info(); }

std::string Group::describe_placement() const {
  const WorldOptions& world = shared_->options();
  return ringlet::describe_placement(size(), world.topology, world.limits, world.placement);
}

std::string_view Group::algorithm(std::string_view operation, std::size_t bytes) const {
  const WorldOptions& world = shared_->options();
  const std::string_view even = operation.ends_with("_v") ? operation.substr(0, operation.size() - 2) : operation;
  for (std::size_t i = 0; i < kCollectiveKindCount; ++i) {
    Call call;
    call.kind = static_cast<CollectiveKind>(i);
    if (call.kind != CollectiveKind::barrier && name_of(call.kind) == even)
      return name_of(choose_algorithm(call, bytes, size(), world.topology, world.limits, world.placement));
  }
  throw InvalidArgument({Errc::invalid_argument, "there is no operation '" + std::string(operation) +
                                                     "'; all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter and "
                                                     "all_to_all have algorithms"});
}

}  // namespace ringlet
