#include "tests/core/operation.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "core/plan/part_layout.hpp"

namespace ringlet::test {

namespace {

using Rows = std::vector<std::int64_t>;

std::int64_t sum_of(const Rows& rows) { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }

std::int64_t rows_before(const Rows& rows, int rank) { return std::accumulate(rows.begin(), rows.begin() + rank, std::int64_t{0}); }

Rows column(const std::vector<Rows>& traffic, int destination) {
  Rows rows;
  for (const Rows& from : traffic) rows.push_back(from[static_cast<std::size_t>(destination)]);
  return rows;
}

std::size_t random_rows(SimRandom& random, std::size_t largest) {
  if (random.below(8) != 0) return random.below(41);
  return random.below(4) != 0 ? random.below(3000) : random.below(largest);
}

/// Returns a view of `rows` rows, from row `first` on.
TensorView view_of(const Operation& operation, Values& values, std::int64_t first, std::int64_t rows) {
  const auto row = static_cast<std::int64_t>(operation.call.row_elements);
  std::byte* data = values.data() + static_cast<std::size_t>(first * row) * size_of(operation.call.dtype);
  return {data, operation.call.dtype, Shape{rows, row}};
}

Values slice(const Operation& operation, const Values& values, std::int64_t first, std::int64_t rows) {
  const auto width = static_cast<std::ptrdiff_t>(operation.call.row_elements * size_of(operation.call.dtype));
  return {values.begin() + first * width, values.begin() + (first + rows) * width};
}

Values concatenation(const std::vector<Values>& parts) {
  Values all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::int64_t input_rows(const Operation& operation, int rank) {
  switch (operation.call.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return operation.parts[static_cast<std::size_t>(rank)];
    case CollectiveKind::scatter:
      return operation.is_root(rank) ? sum_of(operation.parts) : 0;
    case CollectiveKind::reduce_scatter:
      return sum_of(operation.parts);
    case CollectiveKind::all_to_all:
      return sum_of(operation.traffic[static_cast<std::size_t>(rank)]);
    default:
      return static_cast<std::int64_t>(operation.call.rows);
  }
}

std::int64_t output_rows(const Operation& operation, int rank) {
  switch (operation.call.kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return operation.parts[static_cast<std::size_t>(rank)];
    case CollectiveKind::all_gather:
      return sum_of(operation.parts);
    case CollectiveKind::gather:
      return operation.is_root(rank) ? sum_of(operation.parts) : 0;
    case CollectiveKind::all_to_all:
      return sum_of(column(operation.traffic, rank));
    case CollectiveKind::reduce:
      return operation.is_root(rank) ? static_cast<std::int64_t>(operation.call.rows) : 0;
    default:
      return static_cast<std::int64_t>(operation.call.rows);
  }
}

/// Returns whether this rank's smaller buffer lies inside its other one, or is the same.
bool is_in_place(const Operation& operation, int rank) {
  switch (operation.call.kind) {
    case CollectiveKind::broadcast:
      return true;
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
      return operation.in_place;
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return operation.in_place && operation.is_root(rank);
    default:
      return false;
  }
}

TensorView output_view(Operation& operation, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t rows = output_rows(operation, rank);
  if (operation.call.kind == CollectiveKind::scatter && is_in_place(operation, rank))
    return view_of(operation, operation.inputs[r], rows_before(operation.parts, rank), rows);
  return view_of(operation, operation.outputs[r], 0, rows);
}

ConstTensorView input_view(Operation& operation, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t rows = input_rows(operation, rank);
  if (!is_in_place(operation, rank) || operation.call.kind == CollectiveKind::scatter)
    return view_of(operation, operation.inputs[r], 0, rows);
  const std::int64_t first = has_parts(operation.call.kind) ? rows_before(operation.parts, rank) : 0;
  return view_of(operation, operation.outputs[r], first, rows);
}

Values expected_of(const Operation& operation, int rank, const Values& sum, const Values& all) {
  switch (operation.call.kind) {
    case CollectiveKind::all_reduce:
      return sum;
    case CollectiveKind::reduce:
      return operation.is_root(rank) ? sum : Values{};
    case CollectiveKind::reduce_scatter:
      return slice(operation, sum, rows_before(operation.parts, rank), operation.parts[static_cast<std::size_t>(rank)]);
    case CollectiveKind::all_gather:
      return all;
    case CollectiveKind::gather:
      return operation.is_root(rank) ? all : Values{};
    case CollectiveKind::broadcast:
      return operation.inputs[static_cast<std::size_t>(operation.call.root)];
    case CollectiveKind::scatter:
      return slice(operation, operation.inputs[static_cast<std::size_t>(operation.call.root)], rows_before(operation.parts, rank),
                   operation.parts[static_cast<std::size_t>(rank)]);
    case CollectiveKind::all_to_all: {
      std::vector<Values> blocks;
      for (std::size_t from = 0; from < operation.inputs.size(); ++from) {
        const Rows& rows = operation.traffic[from];
        blocks.push_back(slice(operation, operation.inputs[from], rows_before(rows, rank), rows[static_cast<std::size_t>(rank)]));
      }
      return concatenation(blocks);
    }
    case CollectiveKind::barrier:
      break;
  }
  return {};
}

}  // namespace

bool has_parts(CollectiveKind kind) { return traits_of(kind).has_counts; }

void choose_parts(Operation& operation, std::uint64_t rows, int size, SimRandom& random) {
  const auto part = [&] { return static_cast<std::int64_t>(operation.with_counts ? random.below(3) * random.below(rows + 1) / 2 : rows); };
  if (operation.call.kind == CollectiveKind::all_to_all) {
    operation.traffic.resize(static_cast<std::size_t>(size));
    for (auto& from : operation.traffic)
      for (int to = 0; to < size; ++to) from.push_back(part());
  } else if (operation.call.kind == CollectiveKind::reduce_scatter && !operation.with_counts) {
    for (int rank = 0; rank < size; ++rank) operation.parts.push_back(static_cast<std::int64_t>(rows_of(rows, size, rank).count()));
  } else {
    for (int rank = 0; rank < size; ++rank) operation.parts.push_back(part());
  }
}

void complete(Operation& operation, SimRandom& random, const WorldOptions& options) {
  Call& call = operation.call;
  if (has_parts(call.kind)) call.rows = static_cast<std::uint64_t>(sum_of(operation.parts));
  if (has_parts(call.kind) && operation.with_counts) call.counts.assign(operation.parts.begin(), operation.parts.end());
  call.algorithm = choose_algorithm(call, call.bytes(), options.size, options.topology, options.limits, options.placement);
  for (int rank = 0; rank < options.size; ++rank)
    operation.inputs.push_back(
        random_values(call.dtype, static_cast<std::size_t>(input_rows(operation, rank)) * call.row_elements, random));
  // In the order of the ranks the promise is the bits of a plain loop over them, whatever the algorithm.
  Call as_promised = call;
  if (options.placement.order == ReduceOrder::rank) as_promised.algorithm = Algorithm::direct;
  const Values sum = reduces(call.kind) ? reduced(as_promised, operation.inputs, options.topology) : Values{};
  const Values all = concatenation(operation.inputs);
  for (int rank = 0; rank < options.size; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    operation.expected.push_back(expected_of(operation, rank, sum, all));
    Values output(operation.expected[r].size());
    if (is_in_place(operation, rank) && call.kind != CollectiveKind::scatter) {
      const std::int64_t first = has_parts(call.kind) ? rows_before(operation.parts, rank) : 0;
      const auto offset = first * static_cast<std::ptrdiff_t>(call.row_elements * size_of(call.dtype));
      std::copy(operation.inputs[r].begin(), operation.inputs[r].end(), output.begin() + offset);
    }
    operation.outputs.push_back(std::move(output));
  }
}

Operation random_operation(SimRandom& random, const WorldOptions& options, std::size_t largest) {
  Operation operation;
  Call& call = operation.call;
  call.kind = static_cast<CollectiveKind>(pick(random, {0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8}));
  operation.stream = static_cast<std::uint16_t>(random.below(3));
  operation.in_place = random.below(2) != 0;
  if (call.kind != CollectiveKind::barrier) {
    const auto size = static_cast<std::uint64_t>(options.size);
    call.dtype = static_cast<DType>(random.below(kDTypeCount));
    call.rows = random_rows(random, largest / size_of(call.dtype));
    call.root = static_cast<std::int32_t>(random.below(size));
    if (reduces(call.kind)) {
      do call.op = static_cast<ReduceOp>(random.below(kReduceOpCount));
      while (!can_reduce(call.dtype, call.op));
    }
    if (reduces(call.kind) && call.op == ReduceOp::sum && is_floating(call.dtype) && random.below(2) != 0) call.divisor = options.size;
    if (has_parts(call.kind) || call.kind == CollectiveKind::all_to_all) {
      if (random.below(2) != 0) call.row_elements = random.below(7);
      operation.with_counts = random.below(2) != 0;
      const bool rows_are_of_all = call.kind == CollectiveKind::reduce_scatter && !operation.with_counts;
      choose_parts(operation, rows_are_of_all ? call.rows : call.rows / size, options.size, random);
    }
  }
  complete(operation, random, options);
  return operation;
}

Result<CollectiveTask> make_task(Operation& operation, int rank, const WorldOptions& options) {
  const Call& call = operation.call;
  const ConstTensorView input = input_view(operation, rank);
  const TensorView output = output_view(operation, rank);
  const TensorView root_output = operation.is_root(rank) ? output : TensorView();
  const ConstTensorView root_input = operation.is_root(rank) ? input : ConstTensorView();
  const bool counts = operation.with_counts;
  const bool mean = call.divisor != 1.0;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return make_all_reduce(call.op, input, output, call.divisor, options);
    case CollectiveKind::reduce_scatter:
      if (mean) return counts ? make_mean_scatter_v(input, output, operation.parts, options) : make_mean_scatter(input, output, options);
      return counts ? make_reduce_scatter_v(call.op, input, output, operation.parts, options)
                    : make_reduce_scatter(call.op, input, output, options);
    case CollectiveKind::all_gather:
      return counts ? make_all_gather_v(input, output, operation.parts, options) : make_all_gather(input, output, options);
    case CollectiveKind::broadcast:
      return make_broadcast(output, call.root, options);
    case CollectiveKind::reduce:
      if (mean) return make_reduce_mean(input, root_output, call.root, options);
      return make_reduce(call.op, input, root_output, call.root, options);
    case CollectiveKind::gather:
      return counts ? make_gather_v(input, root_output, operation.parts, call.root, options)
                    : make_gather(input, root_output, call.root, options);
    case CollectiveKind::scatter:
      return counts ? make_scatter_v(root_input, output, operation.parts, call.root, options)
                    : make_scatter(root_input, output, call.root, options);
    case CollectiveKind::all_to_all: {
      const Rows& sent = operation.traffic[static_cast<std::size_t>(rank)];
      return counts ? make_all_to_all_v(input, output, sent, column(operation.traffic, rank), options)
                    : make_all_to_all(input, output, options);
    }
    case CollectiveKind::barrier:
      break;
  }
  return make_barrier(options);
}

void check_operation(Operation& operation, int size) {
  CAPTURE(describe(operation.call), operation.in_place, operation.stream);
  for (int rank = 0; rank < size; ++rank) {
    CAPTURE(rank);
    const auto r = static_cast<std::size_t>(rank);
    const Outcome& outcome = *operation.outcomes[r];
    INFO(outcome.status.text());
    REQUIRE(outcome.completions == 1);
    REQUIRE(outcome.status.ok());
    const TensorView output = output_view(operation, rank);
    REQUIRE(Values(output.data(), output.data() + output.bytes()) == operation.expected[r]);
    if (operation.call.kind != CollectiveKind::barrier) continue;
    for (const Outcome* other : operation.outcomes) REQUIRE(outcome.ended >= other->started);
  }
}

}  // namespace ringlet::test
