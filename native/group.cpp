#include <algorithm>
#include <ringlet/group.hpp>

#include "core/base/names_text.hpp"
#include "core/base/refuse.hpp"
#include "core/engine/requests.hpp"
#include "core/gradients/bucket.hpp"
#include "native/joining.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

using native::Packing;

/// Returns the arguments with packed views in place of those with gaps. Arguments that only the root uses are left unchanged on other
/// ranks.
CollectiveArguments packed(CollectiveForm form, CollectiveArguments arguments, Packing& packing, const WorldOptions& world) {
  const bool is_root = world.rank == arguments.root;
  for (const Argument argument : arguments_of(form)) {
    const bool reads = argument == Argument::input || (argument == Argument::root_input && is_root);
    const bool writes = argument == Argument::output || (argument == Argument::root_output && is_root);
    if (reads) arguments.input = packing.read(arguments.input);
    if (writes) arguments.output = packing.write(arguments.output);
    if (argument == Argument::values) arguments.output = packing.update(arguments.output);
  }
  return arguments;
}

void run(native::SharedGroup& group, const CallOptions& options, CollectiveForm form, const CollectiveArguments& arguments) {
  Packing packing;
  group.run(options, make_collective(form, packed(form, arguments, packing, group.options()), group.options()));
  packing.write_back();
}

Work start(native::SharedGroup& group, const CallOptions& options, CollectiveForm form, const CollectiveArguments& arguments) {
  Packing packing;
  auto task = make_collective(form, packed(form, arguments, packing, group.options()), group.options());
  return group.start(options, std::move(task), std::move(packing));
}

}  // namespace

int Group::rank() const noexcept { return shared_->options().rank; }
int Group::size() const noexcept { return shared_->options().size; }
int Group::guests() const noexcept { return shared_->options().guests; }

void Group::all_reduce(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::all_reduce, {.op = op, .input = input, .output = output});
}
Work Group::all_reduce_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::all_reduce, {.op = op, .input = input, .output = output});
}

void Group::all_mean(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::all_mean, {.input = input, .output = output});
}
Work Group::all_mean_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::all_mean, {.input = input, .output = output});
}

void Group::reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::reduce_scatter, {.op = op, .input = input, .output = output});
}
Work Group::reduce_scatter_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::reduce_scatter, {.op = op, .input = input, .output = output});
}

void Group::mean_scatter(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::mean_scatter, {.input = input, .output = output});
}
Work Group::mean_scatter_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::mean_scatter, {.input = input, .output = output});
}

void Group::all_gather(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::all_gather, {.input = input, .output = output});
}
Work Group::all_gather_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::all_gather, {.input = input, .output = output});
}

void Group::reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                             const CallOptions& options) {
  run(*shared_, options, CollectiveForm::reduce_scatter_v, {.op = op, .input = input, .output = output, .counts = counts});
}
Work Group::reduce_scatter_v_async(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                   const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::reduce_scatter_v, {.op = op, .input = input, .output = output, .counts = counts});
}

void Group::mean_scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::mean_scatter_v, {.input = input, .output = output, .counts = counts});
}
Work Group::mean_scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                 const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::mean_scatter_v, {.input = input, .output = output, .counts = counts});
}

void Group::all_gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::all_gather_v, {.input = input, .output = output, .counts = counts});
}
Work Group::all_gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::all_gather_v, {.input = input, .output = output, .counts = counts});
}

void Group::reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::reduce, {.op = op, .input = input, .output = output, .root = root});
}
Work Group::reduce_async(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::reduce, {.op = op, .input = input, .output = output, .root = root});
}

void Group::reduce_mean(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::reduce_mean, {.input = input, .output = output, .root = root});
}
Work Group::reduce_mean_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::reduce_mean, {.input = input, .output = output, .root = root});
}

void Group::gather(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::gather, {.input = input, .output = output, .root = root});
}
Work Group::gather_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::gather, {.input = input, .output = output, .root = root});
}

void Group::gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::gather_v, {.input = input, .output = output, .counts = counts, .root = root});
}
Work Group::gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                           const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::gather_v, {.input = input, .output = output, .counts = counts, .root = root});
}

void Group::scatter(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::scatter, {.input = input, .output = output, .root = root});
}
Work Group::scatter_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::scatter, {.input = input, .output = output, .root = root});
}

void Group::scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                      const CallOptions& options) {
  run(*shared_, options, CollectiveForm::scatter_v, {.input = input, .output = output, .counts = counts, .root = root});
}
Work Group::scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                            const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::scatter_v, {.input = input, .output = output, .counts = counts, .root = root});
}

void Group::all_to_all(ConstTensorView input, TensorView output, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::all_to_all, {.input = input, .output = output});
}
Work Group::all_to_all_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::all_to_all, {.input = input, .output = output});
}

void Group::all_to_all_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                         std::span<const std::int64_t> receive_counts, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::all_to_all_v,
      {.input = input, .output = output, .counts = send_counts, .receive_counts = receive_counts});
}
Work Group::all_to_all_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                               std::span<const std::int64_t> receive_counts, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::all_to_all_v,
               {.input = input, .output = output, .counts = send_counts, .receive_counts = receive_counts});
}

void Group::broadcast(TensorView values, int root, const CallOptions& options) {
  run(*shared_, options, CollectiveForm::broadcast, {.output = values, .root = root});
}
Work Group::broadcast_async(TensorView values, int root, const CallOptions& options) {
  return start(*shared_, options, CollectiveForm::broadcast, {.output = values, .root = root});
}

void Group::barrier(const CallOptions& options) { run(*shared_, options, CollectiveForm::barrier, {}); }
Work Group::barrier_async(const CallOptions& options) { return start(*shared_, options, CollectiveForm::barrier, {}); }

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

int Group::recv_any(TensorView values, const CallOptions& options) {
  Packing packing;
  int source = -1;
  shared_->run_receive(options, make_receive_any(packing.write(values), source, shared_->options()));
  packing.write_back();
  return source;
}
Work Group::recv_any_async(TensorView values, int& source, const CallOptions& options) {
  Packing packing;
  auto task = make_receive_any(packing.write(values), source, shared_->options());
  return shared_->start_receive(options, std::move(task), std::move(packing));
}

std::optional<Group> Group::split(int color, int key, const CallOptions& options) const {
  auto part = shared_->split(options, color, key);
  return part ? std::optional<Group>(Group(std::move(part))) : std::nullopt;
}

Group Group::create(std::span<const int> ranks, int tag, const CallOptions& options) const {
  return Group(shared_->create(options, {ranks.begin(), ranks.end()}, tag));
}

bool Group::elastic() const noexcept { return shared_->elastic(); }
std::uint32_t Group::epoch() const noexcept { return shared_->epoch(); }

Reformed Group::reform(const CallOptions& options) const {
  std::vector<int> before;
  std::uint64_t lineage = 0;
  Reformed reformed{Group(shared_->survivors().reform(options, before, lineage)), std::move(before), {}, lineage};
  for (int rank = 0; rank < shared_->world_size(); ++rank)
    if (!std::count(reformed.before.begin(), reformed.before.end(), rank)) reformed.lost.push_back(rank);
  return reformed;
}

bool Group::agree(bool mine, const CallOptions& options) const { return shared_->survivors().agree(mine, options); }
void Group::revoke() const { shared_->revoke(); }
Group Group::rejoin() const { return Group(native::rejoin(*shared_)); }
void Group::leave() const { shared_->leave(); }
std::string Group::door() const { return shared_->door(); }

std::optional<Reformed> Group::admit(const CallOptions& options) const {
  auto grown = shared_->growth().admit(options);
  if (!grown) return std::nullopt;
  const std::uint64_t lineage = grown->lineage();
  Reformed next{Group(std::move(grown)), {}, {}, lineage};
  for (int rank = 0; rank < next.world.size(); ++rank) next.before.push_back(rank < size() ? rank : -1);
  return next;
}

std::string_view Group::links() const { return shared_->links(); }

std::vector<LinkInfo> Group::link_info() const { return shared_->link_info(); }

std::string Group::describe_placement() const {
  const WorldOptions& world = shared_->options();
  return ringlet::describe_placement(size(), shared_->topology(), world.limits, world.placement);
}

std::string_view Group::algorithm(std::string_view operation, std::size_t bytes, const std::optional<Wire>& wire) const {
  const WorldOptions& world = shared_->options();
  if (const auto kind = find_collective(operation); kind && *kind != CollectiveKind::barrier) {
    Call call;
    call.kind = *kind;
    const std::size_t elements = bytes / sizeof(float);
    WireFormat format{wire ? wire->dtype() : DType::f32};
    if (wire && wire->blocks() && elements >= wire->options().least_elements) format = {DType::f32, wire->blocks()};
    call.dtype = format.dtype;
    call.blocks = format.blocks;
    const std::size_t wire_bytes = wire ? format.bytes(elements) : bytes;
    return name_of(choose_algorithm(call, wire_bytes, size(), shared_->topology(), world.limits, world.placement));
  }
  std::vector<std::string_view> names;
  for (const CollectiveFacts& facts : kCollectives)
    if (facts.kind != CollectiveKind::barrier) names.push_back(name_of(facts.kind));
  refuse("there is no operation '" + std::string(operation) + "'; " + names_text(names, "and") + " have algorithms");
}

}  // namespace ringlet
