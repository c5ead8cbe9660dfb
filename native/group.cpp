#include <ringlet/group.hpp>

#include "core/engine/requests.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

namespace {

Result<CollectiveTask> make_all_mean(ConstTensorView input, TensorView output, const WorldOptions& options) {
  if (is_valid(input.dtype()) && !is_floating(input.dtype()))
    return Status{Errc::invalid_argument,
                  "a mean of " + std::string(name_of(input.dtype())) + " cannot be held in it; cast to a floating dtype first"};
  return make_all_reduce(ReduceOp::sum, input, output, options.size, options);
}

}  // namespace

// --- Work ---

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    Work old = std::move(*this);  // waits
    group_ = std::move(other.group_);
    state_ = std::move(other.state_);
  }
  return *this;
}

Work::~Work() {
  if (state_) group_->progress().wait(state_->done, std::nullopt);
}

void Work::wait() { throw_if_failed(status()); }

bool Work::wait_for(std::chrono::milliseconds timeout) {
  if (!state_) return true;
  if (!group_->progress().wait(state_->done, Duration::milliseconds(timeout.count()))) return false;
  throw_if_failed(state_->status);
  return true;
}

bool Work::done() const { return !state_ || state_->done.load(std::memory_order_acquire); }

Status Work::status() {
  if (!state_) return {};
  group_->progress().wait(state_->done, std::nullopt);
  return state_->status;
}

// --- Group ---

int Group::rank() const noexcept { return shared_->options().rank; }
int Group::size() const noexcept { return shared_->options().size; }

void Group::all_reduce(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  shared_->run(options, make_all_reduce(op, input, output, 1.0, shared_->options()));
}
Work Group::all_reduce_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  return {shared_, shared_->start(options, make_all_reduce(op, input, output, 1.0, shared_->options()))};
}

void Group::all_mean(ConstTensorView input, TensorView output, const CallOptions& options) {
  shared_->run(options, make_all_mean(input, output, shared_->options()));
}
Work Group::all_mean_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return {shared_, shared_->start(options, make_all_mean(input, output, shared_->options()))};
}

void Group::reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  shared_->run(options, make_reduce_scatter(op, input, output, shared_->options()));
}
Work Group::reduce_scatter_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options) {
  return {shared_, shared_->start(options, make_reduce_scatter(op, input, output, shared_->options()))};
}

void Group::all_gather(ConstTensorView input, TensorView output, const CallOptions& options) {
  shared_->run(options, make_all_gather(input, output, shared_->options()));
}
Work Group::all_gather_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return {shared_, shared_->start(options, make_all_gather(input, output, shared_->options()))};
}

void Group::reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                             const CallOptions& options) {
  shared_->run(options, make_reduce_scatter_v(op, input, output, counts, shared_->options()));
}
Work Group::reduce_scatter_v_async(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                   const CallOptions& options) {
  return {shared_, shared_->start(options, make_reduce_scatter_v(op, input, output, counts, shared_->options()))};
}

void Group::all_gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  shared_->run(options, make_all_gather_v(input, output, counts, shared_->options()));
}
Work Group::all_gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options) {
  return {shared_, shared_->start(options, make_all_gather_v(input, output, counts, shared_->options()))};
}

void Group::reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  shared_->run(options, make_reduce(op, input, output, root, shared_->options()));
}
Work Group::reduce_async(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return {shared_, shared_->start(options, make_reduce(op, input, output, root, shared_->options()))};
}

void Group::gather(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  shared_->run(options, make_gather(input, output, root, shared_->options()));
}
Work Group::gather_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return {shared_, shared_->start(options, make_gather(input, output, root, shared_->options()))};
}

void Group::gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options) {
  shared_->run(options, make_gather_v(input, output, counts, root, shared_->options()));
}
Work Group::gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                           const CallOptions& options) {
  return {shared_, shared_->start(options, make_gather_v(input, output, counts, root, shared_->options()))};
}

void Group::scatter(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  shared_->run(options, make_scatter(input, output, root, shared_->options()));
}
Work Group::scatter_async(ConstTensorView input, TensorView output, int root, const CallOptions& options) {
  return {shared_, shared_->start(options, make_scatter(input, output, root, shared_->options()))};
}

void Group::scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                      const CallOptions& options) {
  shared_->run(options, make_scatter_v(input, output, counts, root, shared_->options()));
}
Work Group::scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                            const CallOptions& options) {
  return {shared_, shared_->start(options, make_scatter_v(input, output, counts, root, shared_->options()))};
}

void Group::all_to_all(ConstTensorView input, TensorView output, const CallOptions& options) {
  shared_->run(options, make_all_to_all(input, output, shared_->options()));
}
Work Group::all_to_all_async(ConstTensorView input, TensorView output, const CallOptions& options) {
  return {shared_, shared_->start(options, make_all_to_all(input, output, shared_->options()))};
}

void Group::all_to_all_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                         std::span<const std::int64_t> receive_counts, const CallOptions& options) {
  shared_->run(options, make_all_to_all_v(input, output, send_counts, receive_counts, shared_->options()));
}
Work Group::all_to_all_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                               std::span<const std::int64_t> receive_counts, const CallOptions& options) {
  return {shared_, shared_->start(options, make_all_to_all_v(input, output, send_counts, receive_counts, shared_->options()))};
}

void Group::broadcast(TensorView values, int root, const CallOptions& options) {
  shared_->run(options, make_broadcast(values, root, shared_->options()));
}
Work Group::broadcast_async(TensorView values, int root, const CallOptions& options) {
  return {shared_, shared_->start(options, make_broadcast(values, root, shared_->options()))};
}

void Group::barrier(const CallOptions& options) { shared_->run(options, make_barrier(shared_->options())); }
Work Group::barrier_async(const CallOptions& options) { return {shared_, shared_->start(options, make_barrier(shared_->options()))}; }

void Group::send(ConstTensorView values, int destination, const CallOptions& options) {
  shared_->run_send(options, make_send(values, destination, shared_->options()));
}
Work Group::send_async(ConstTensorView values, int destination, const CallOptions& options) {
  return {shared_, shared_->start_send(options, make_send(values, destination, shared_->options()))};
}

void Group::recv(TensorView values, int source, const CallOptions& options) {
  shared_->run_receive(options, make_receive(values, source, shared_->options()));
}
Work Group::recv_async(TensorView values, int source, const CallOptions& options) {
  return {shared_, shared_->start_receive(options, make_receive(values, source, shared_->options()))};
}

std::optional<Group> Group::split(int color, int key, const CallOptions& options) const {
  auto part = shared_->split(options, color, key);
  return part ? std::optional<Group>(Group(std::move(part))) : std::nullopt;
}

std::string_view Group::algorithm(std::string_view operation, std::size_t bytes) const {
  const std::string_view even = operation.ends_with("_v") ? operation.substr(0, operation.size() - 2) : operation;
  for (std::size_t i = 0; i < kCollectiveKindCount; ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    if (kind != CollectiveKind::barrier && name_of(kind) == even)
      return name_of(choose_algorithm(kind, bytes, size(), shared_->options().limits));
  }
  throw InvalidArgument({Errc::invalid_argument, "there is no operation '" + std::string(operation) +
                                                     "'; all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter and "
                                                     "all_to_all have algorithms"});
}

}  // namespace ringlet
