#include "core/base/refuse.hpp"
#include "wasm/cpp/exports.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;

namespace {

Shape shape_of(size_t rows, size_t row_elements) { return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(row_elements)}; }

}  // namespace

int32_t ringlet_collective(int32_t ticket, int32_t group, int32_t stream, int32_t timeout_ms, int32_t form, int32_t op, int32_t dtype,
                           const void* input, size_t input_rows, void* output, size_t output_rows, size_t row_elements,
                           const uint32_t* counts, const uint32_t* receive_counts, int32_t root) {
  return browser::start({ticket, group, stream, timeout_ms}, [&](const WorldOptions& world) -> Result<CollectiveTask> {
    const auto known_form = from_number<CollectiveForm>(form);
    const auto known_op = from_number<ReduceOp>(op);
    const auto known_dtype = from_number<DType>(dtype);
    if (!known_form) return invalid("there is no collective number " + std::to_string(form));
    if (!known_op) return invalid("there is no operation number " + std::to_string(op));
    if (!known_dtype) return invalid("there is no dtype number " + std::to_string(dtype));
    const auto rows = browser::counts_of(counts, world), receive_rows = browser::counts_of(receive_counts, world);
    return make_collective(*known_form,
                           {.op = *known_op,
                            .input = ConstTensorView(input, *known_dtype, shape_of(input_rows, row_elements)),
                            .output = TensorView(output, *known_dtype, shape_of(output_rows, row_elements)),
                            .counts = rows,
                            .receive_counts = receive_rows,
                            .root = root},
                           world);
  });
}
