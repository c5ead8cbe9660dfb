#include <optional>

#include "core/base/arithmetic.hpp"
#include "core/engine/request_checks.hpp"
#include "core/plan/part_layout.hpp"

namespace ringlet {

namespace {

std::string counted_parts(std::uint64_t number, const char* what) { return std::to_string(number) + " " + what; }

Status check_axis(const char* call, const char* name, ConstTensorView view) {
  if (view.shape().axes() > 0) return {};
  return invalid(std::string(call) + ": " + name + " is a scalar; it needs an axis 0 to divide among the ranks");
}

/// Appends `counts` to those of `call`, and sets its rows to their sum. The rows must be possible in memory.
Status add_counts(const char* name, const char* argument, Counts counts, Call& call, const WorldOptions& options) {
  const std::string where = std::string(name) + ": " + argument;
  if (counts.size() != static_cast<std::size_t>(options.size))
    return invalid(where + " has " + counted_parts(counts.size(), "entries") + ", but the group has " +
                   counted_parts(static_cast<std::uint64_t>(options.size), "ranks"));
  call.rows = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] < 0) return invalid(where + " gives rank " + std::to_string(rank) + " " + std::to_string(counts[rank]) + " rows");
    if (counts[rank] > INT64_MAX - static_cast<std::int64_t>(call.rows)) return invalid(where + " adds up to more rows than there can be");
    call.rows += static_cast<std::uint64_t>(counts[rank]);
    call.counts.push_back(static_cast<std::uint64_t>(counts[rank]));
  }
  const std::int64_t extents[] = {static_cast<std::int64_t>(call.rows), static_cast<std::int64_t>(call.row_elements)};
  if (!checked_bytes(extents, size_of(call.dtype)))
    return invalid(where + " adds up to " + counted_parts(call.rows, "rows") + " of " + counted_parts(call.row_elements, "elements") +
                   ", more than memory can hold");
  return {};
}

/// Checks that axis 0 of `view` has as many rows as the counts add up to.
Status check_total(const char* call, const char* name, ConstTensorView view, std::uint64_t rows, const char* argument) {
  if (Status status = check_axis(call, name, view); !status.ok()) return status;
  if (static_cast<std::uint64_t>(view.shape()[0]) == rows) return {};
  return invalid(std::string(call) + ": " + name + " " + to_string(view.shape()) + " has " +
                 counted_parts(static_cast<std::uint64_t>(view.shape()[0]), "rows") + ", but " + argument + " add up to " +
                 std::to_string(rows));
}

/// Checks that `view` holds exactly this rank's part.
Status check_part(const char* call, const char* name, ConstTensorView view, ElementRange part, std::uint64_t row, int rank) {
  if (view.count() == part.count() * row) return {};
  return invalid(std::string(call) + ": " + name + " has " + counted_parts(view.count(), "elements") + ", but rank " +
                 std::to_string(rank) + "'s part is " + counted_parts(part.count(), "rows") + ", " +
                 counted_parts(part.count() * row, "elements"));
}

Status check_divides(const char* call, ConstTensorView input, const WorldOptions& options, const char* instead) {
  if (Status status = check_axis(call, "input", input); !status.ok()) return status;
  if (input.shape()[0] % options.size == 0) return {};
  return invalid(std::string(call) + ": the " + std::to_string(input.shape()[0]) + " rows of input " + to_string(input.shape()) +
                 " do not divide by " + std::to_string(options.size) + " ranks; use " + instead);
}

/// One buffer of a gather or scatter, with the name of its argument.
struct Side {
  const char* name;
  ConstTensorView view;
};

/// Fills in how `whole` is divided into the ranks' parts, of which `part` is this rank's, and checks that they fit. With `has_whole` this
/// rank has the whole buffer, from which the length of a row is taken, so that a part without rows may have any shape.
Status divide(const char* name, Side part, Side whole, bool has_whole, std::optional<Counts> counts, Call& call,
              const WorldOptions& options) {
  const auto rank = static_cast<std::size_t>(options.rank);
  if (Status status = check_view(name, part.name, part.view); !status.ok()) return status;
  call.dtype = part.view.dtype();
  ElementRange mine{rank * part.view.count(), (rank + 1) * part.view.count()};
  if (counts) {
    if (Status status = has_whole ? check_view(name, whole.name, whole.view) : Status(); !status.ok()) return status;
    const Side& ruled = has_whole ? whole : part;
    if (Status status = check_axis(name, ruled.name, ruled.view); !status.ok()) return status;
    call.row_elements = row_elements(ruled.view);
    if (Status status = add_counts(name, "counts", *counts, call, options); !status.ok()) return status;
    mine = part_of(call.counts, options.rank);
    if (Status status = check_part(name, part.name, part.view, mine, call.row_elements, options.rank); !status.ok()) return status;
  } else {
    call.rows = part.view.count();
  }
  if (!has_whole) return {};
  if (Status status = check_pair(name, part.view, whole.view); !status.ok()) return status;
  if (counts) {
    if (Status status = check_total(name, whole.name, whole.view, call.rows, "counts"); !status.ok()) return status;
  } else if (const auto size = static_cast<std::size_t>(options.size); whole.view.count() != part.view.count() * size) {
    return invalid(std::string(name) + ": " + whole.name + " has " + counted_parts(whole.view.count(), "elements") + "; " +
                   counted_parts(size, "ranks") + " of " + std::to_string(part.view.count()) + " need " +
                   std::to_string(part.view.count() * size));
  }
  return check_own_place(name, part.view, whole.view, mine.begin * call.row_elements * size_of(call.dtype));
}

Result<CollectiveTask> scatter_reduced(const char* name, ReduceOp op, ConstTensorView input, TensorView output,
                                       std::optional<Counts> counts, double divisor, const WorldOptions& options) {
  if (Status status = check_op(name, op, input.dtype()); !status.ok()) return status;
  if (Status status = check_pair(name, input, output); !status.ok()) return status;
  if (Status status = check_axis(name, "input", input); !status.ok()) return status;
  Call call;
  call.kind = CollectiveKind::reduce_scatter;
  call.op = op;
  call.divisor = divisor;
  call.dtype = input.dtype();
  call.rows = static_cast<std::uint64_t>(input.shape()[0]);
  call.row_elements = row_elements(input);
  ElementRange mine = rows_of(call.rows, options.size, options.rank);
  if (counts) {
    if (Status status = add_counts(name, "counts", *counts, call, options); !status.ok()) return status;
    if (Status status = check_total(name, "input", input, call.rows, "counts"); !status.ok()) return status;
    mine = part_of(call.counts, options.rank);
  }
  if (Status status = check_part(name, "output", output, mine, call.row_elements, options.rank); !status.ok()) return status;
  if (overlap(input, output)) return invalid(std::string(name) + ": input and output overlap; they must be apart");
  return make_task(std::move(call), input, output, options);
}

Result<CollectiveTask> scatter_mean(const char* name, ConstTensorView input, TensorView output, std::optional<Counts> counts,
                                    const WorldOptions& options) {
  if (Status status = check_mean(name, input.dtype()); !status.ok()) return status;
  return scatter_reduced(name, ReduceOp::sum, input, output, counts, options.size, options);
}

Result<CollectiveTask> all_gathered(const char* name, ConstTensorView input, TensorView output, std::optional<Counts> counts,
                                    const WorldOptions& options, bool has_part_before = false) {
  Call call;
  call.kind = CollectiveKind::all_gather;
  call.root = has_part_before ? 1 : 0;
  if (Status status = divide(name, {"input", input}, {"output", output}, true, counts, call, options); !status.ok()) return status;
  return make_task(std::move(call), input, output, options);
}

Result<CollectiveTask> gathered(const char* name, ConstTensorView input, TensorView output, std::optional<Counts> counts, int root,
                                const WorldOptions& options) {
  if (Status status = check_rank(name, "root", root, options); !status.ok()) return status;
  const bool is_root = options.rank == root;
  Call call;
  call.kind = CollectiveKind::gather;
  call.root = root;
  if (Status status = divide(name, {"input", input}, {"output", output}, is_root, counts, call, options); !status.ok()) return status;
  return make_task(std::move(call), input, is_root ? output : TensorView(), options);
}

Result<CollectiveTask> scattered(const char* name, ConstTensorView input, TensorView output, std::optional<Counts> counts, int root,
                                 const WorldOptions& options) {
  if (Status status = check_rank(name, "root", root, options); !status.ok()) return status;
  const bool is_root = options.rank == root;
  Call call;
  call.kind = CollectiveKind::scatter;
  call.root = root;
  if (Status status = divide(name, {"output", output}, {"input", input}, is_root, counts, call, options); !status.ok()) return status;
  return make_task(std::move(call), is_root ? input : ConstTensorView(), output, options);
}

Status refuse_overlap(const char* name, ConstTensorView input, ConstTensorView output) {
  if (!overlap(input, output)) return {};
  return invalid(std::string(name) + ": input and output overlap; they must be apart, as it does not work in place");
}

}  // namespace

Result<CollectiveTask> make_reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const WorldOptions& options) {
  return scatter_reduced("reduce_scatter", op, input, output, std::nullopt, 1.0, options);
}
Result<CollectiveTask> make_reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, Counts counts,
                                             const WorldOptions& options) {
  return scatter_reduced("reduce_scatter_v", op, input, output, counts, 1.0, options);
}

CollectiveTask make_reduce_scatter_blocks(BlockFormat format, ConstBytes blocks, TensorView output, Counts counts,
                                          const WorldOptions& options) {
  Call call;
  call.kind = CollectiveKind::reduce_scatter;
  call.dtype = DType::f32;
  call.blocks = format;
  call.counts.assign(counts.begin(), counts.end());
  call.rows = blocks.size() / block_bytes(format);
  return make_task(std::move(call), ConstTensorView(blocks.data(), DType::u8, blocks.size()), output, options);
}

Result<CollectiveTask> make_mean_scatter(ConstTensorView input, TensorView output, const WorldOptions& options) {
  return scatter_mean("mean_scatter", input, output, std::nullopt, options);
}
Result<CollectiveTask> make_mean_scatter_v(ConstTensorView input, TensorView output, Counts counts, const WorldOptions& options) {
  return scatter_mean("mean_scatter_v", input, output, counts, options);
}

Result<CollectiveTask> make_all_gather(ConstTensorView input, TensorView output, const WorldOptions& options) {
  return all_gathered("all_gather", input, output, std::nullopt, options);
}
Result<CollectiveTask> make_all_gather_v(ConstTensorView input, TensorView output, Counts counts, const WorldOptions& options) {
  return all_gathered("all_gather_v", input, output, counts, options);
}

Result<CollectiveTask> make_all_gather_of_rest(ConstTensorView input, TensorView output, Counts counts, const WorldOptions& options) {
  return all_gathered("all_gather_v", input, output, counts, options, true);
}

Result<CollectiveTask> make_gather(ConstTensorView input, TensorView output, int root, const WorldOptions& options) {
  return gathered("gather", input, output, std::nullopt, root, options);
}
Result<CollectiveTask> make_gather_v(ConstTensorView input, TensorView output, Counts counts, int root, const WorldOptions& options) {
  return gathered("gather_v", input, output, counts, root, options);
}

Result<CollectiveTask> make_scatter(ConstTensorView input, TensorView output, int root, const WorldOptions& options) {
  if (root == options.rank) {
    if (Status status = check_view("scatter", "input", input); !status.ok()) return status;
    if (Status status = check_divides("scatter", input, options, "scatter_v"); !status.ok()) return status;
  }
  return scattered("scatter", input, output, std::nullopt, root, options);
}
Result<CollectiveTask> make_scatter_v(ConstTensorView input, TensorView output, Counts counts, int root, const WorldOptions& options) {
  return scattered("scatter_v", input, output, counts, root, options);
}

Result<CollectiveTask> make_all_to_all(ConstTensorView input, TensorView output, const WorldOptions& options) {
  constexpr const char* kCall = "all_to_all";
  if (Status status = check_pair(kCall, input, output); !status.ok()) return status;
  if (Status status = check_divides(kCall, input, options, "all_to_all_v"); !status.ok()) return status;
  if (input.count() != output.count())
    return invalid("all_to_all: input has " + counted_parts(input.count(), "elements") + " but output has " +
                   std::to_string(output.count()));
  if (Status status = refuse_overlap(kCall, input, output); !status.ok()) return status;
  Call call;
  call.kind = CollectiveKind::all_to_all;
  call.dtype = input.dtype();
  call.rows = input.count() / static_cast<std::size_t>(options.size);
  return make_task(std::move(call), input, output, options);
}

Result<CollectiveTask> make_all_to_all_v(ConstTensorView input, TensorView output, Counts send_counts, Counts receive_counts,
                                         const WorldOptions& options) {
  constexpr const char* kCall = "all_to_all_v";
  if (Status status = check_pair(kCall, input, output); !status.ok()) return status;
  Call call;
  call.kind = CollectiveKind::all_to_all;
  call.dtype = input.dtype();
  call.row_elements = row_elements(input);
  if (Status status = add_counts(kCall, "send_counts", send_counts, call, options); !status.ok()) return status;
  if (Status status = check_total(kCall, "input", input, call.rows, "send_counts"); !status.ok()) return status;
  if (Status status = add_counts(kCall, "receive_counts", receive_counts, call, options); !status.ok()) return status;
  if (Status status = check_total(kCall, "output", output, call.rows, "receive_counts"); !status.ok()) return status;
  call.rows = 0;
  if (row_elements(output) != call.row_elements)
    return invalid("all_to_all_v: a row of input " + to_string(input.shape()) + " has " + counted_parts(call.row_elements, "elements") +
                   ", of output " + to_string(output.shape()) + " " + std::to_string(row_elements(output)) + "; give both the same");
  const auto self = static_cast<std::size_t>(options.rank);
  if (send_counts[self] != receive_counts[self])
    return invalid("all_to_all_v: rank " + std::to_string(options.rank) + " sends itself " + std::to_string(send_counts[self]) +
                   " rows but receives " + std::to_string(receive_counts[self]) + " from itself");
  if (Status status = refuse_overlap(kCall, input, output); !status.ok()) return status;
  return make_task(std::move(call), input, output, options);
}

}  // namespace ringlet
