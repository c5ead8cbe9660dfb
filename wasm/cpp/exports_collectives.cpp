#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;
using browser::OperationOptions;

namespace {

Shape shape_of(size_t rows, size_t row_elements) { return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(row_elements)}; }

TensorView view(void* data, int32_t dtype, size_t rows, size_t row_elements) {
  return {data, static_cast<DType>(dtype), shape_of(rows, row_elements)};
}

ConstTensorView view(const void* data, int32_t dtype, size_t rows, size_t row_elements) {
  return {data, static_cast<DType>(dtype), shape_of(rows, row_elements)};
}

ReduceOp op_of(int32_t op) { return static_cast<ReduceOp>(op); }

size_t sum_of(const uint32_t* counts, int32_t ranks) {
  size_t rows = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) rows += counts[rank];
  return rows;
}

/// Rows of the whole buffer, where one part has `rows` or `counts` says how many each has.
size_t all_rows(size_t rows, const uint32_t* counts, const WorldOptions& world) {
  return counts == nullptr ? rows * static_cast<size_t>(world.size) : sum_of(counts, world.size);
}

/// Of what a rank gets of `rows`.
size_t own_rows(size_t rows, const uint32_t* counts, const WorldOptions& world) {
  const auto size = static_cast<size_t>(world.size), rank = static_cast<size_t>(world.rank);
  return counts == nullptr ? rows / size + (rank < rows % size ? 1 : 0) : counts[rank];
}

}  // namespace

int32_t ringlet_all_reduce(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t op, int32_t dtype, const void* input,
                           void* output, size_t rows, size_t row_elements) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    return make_all_reduce(op_of(op), view(input, dtype, rows, row_elements), view(output, dtype, rows, row_elements), 1.0, world);
  });
}

int32_t ringlet_all_mean(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* input, void* output,
                         size_t rows, size_t row_elements) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    return make_all_mean(view(input, dtype, rows, row_elements), view(output, dtype, rows, row_elements), world);
  });
}

int32_t ringlet_reduce_scatter(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t op, int32_t dtype,
                               const void* input, void* output, size_t rows, size_t row_elements, const uint32_t* counts) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    const auto in = view(input, dtype, rows, row_elements);
    const auto out = view(output, dtype, own_rows(rows, counts, world), row_elements);
    return counts == nullptr ? make_reduce_scatter(op_of(op), in, out, world)
                             : make_reduce_scatter_v(op_of(op), in, out, browser::counts_of(counts, world), world);
  });
}

int32_t ringlet_all_gather(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* input,
                           void* output, size_t rows, size_t row_elements, const uint32_t* counts) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    const auto in = view(input, dtype, rows, row_elements);
    const auto out = view(output, dtype, all_rows(rows, counts, world), row_elements);
    return counts == nullptr ? make_all_gather(in, out, world) : make_all_gather_v(in, out, browser::counts_of(counts, world), world);
  });
}

int32_t ringlet_broadcast(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, void* values, size_t rows,
                          size_t row_elements, int32_t root) {
  return browser::start({ticket, group, stream, timeout_ms},
                        [&](const WorldOptions& world) { return make_broadcast(view(values, dtype, rows, row_elements), root, world); });
}

int32_t ringlet_reduce(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t op, int32_t dtype, const void* input,
                       void* output, size_t rows, size_t row_elements, int32_t root) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    return make_reduce(op_of(op), view(input, dtype, rows, row_elements), view(output, dtype, rows, row_elements), root, world);
  });
}

int32_t ringlet_gather(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* input, void* output,
                       size_t rows, size_t row_elements, const uint32_t* counts, int32_t root) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    const auto in = view(input, dtype, rows, row_elements);
    const auto out = view(output, dtype, all_rows(rows, counts, world), row_elements);
    return counts == nullptr ? make_gather(in, out, root, world) : make_gather_v(in, out, browser::counts_of(counts, world), root, world);
  });
}

int32_t ringlet_scatter(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* input, void* output,
                        size_t rows, size_t row_elements, const uint32_t* counts, int32_t root) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    const auto in = view(input, dtype, all_rows(rows, counts, world), row_elements);
    const auto out = view(output, dtype, rows, row_elements);
    return counts == nullptr ? make_scatter(in, out, root, world) : make_scatter_v(in, out, browser::counts_of(counts, world), root, world);
  });
}

int32_t ringlet_all_to_all(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* input,
                           void* output, size_t rows, size_t row_elements) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    return make_all_to_all(view(input, dtype, rows, row_elements), view(output, dtype, rows, row_elements), world);
  });
}

int32_t ringlet_all_to_all_v(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t dtype, const void* input,
                             void* output, size_t row_elements, const uint32_t* send_counts, const uint32_t* receive_counts) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) {
    return make_all_to_all_v(view(input, dtype, sum_of(send_counts, world.size), row_elements),
                             view(output, dtype, sum_of(receive_counts, world.size), row_elements), browser::counts_of(send_counts, world),
                             browser::counts_of(receive_counts, world), world);
  });
}

int32_t ringlet_barrier(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms) {
  return browser::start({ticket, group, stream, timeout_ms},
                        [](const WorldOptions& world) -> Result<CollectiveTask> { return make_barrier(world); });
}
