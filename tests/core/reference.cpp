#include "tests/core/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/plan/part_layout.hpp"
#include "simd/kernels.hpp"

namespace ringlet::test {

namespace {

template <class T>
void put(Values& values, std::size_t index, T value) {
  std::memcpy(values.data() + index * sizeof(T), &value, sizeof(T));
}

double random_number(SimRandom& random) {
  switch (random.below(24)) {
    case 0:
      return std::nan("");
    case 1:
      return INFINITY;
    case 2:
      return -INFINITY;
    case 3:
      return 0.0;
    case 4:
      return -0.0;
    default:
      return (static_cast<double>(random.below(1u << 20)) - (1 << 19)) / static_cast<double>(1u << random.below(24));
  }
}

/// Returns the rank whose part holds the element. The ring begins behind this rank.
int owner_of(const Call& call, std::size_t element, int size) {
  if (call.kind == CollectiveKind::reduce) return call.root;
  for (int rank = 0; rank < size; ++rank) {
    ElementRange range = part_of(call.elements(), size, rank);
    if (call.kind == CollectiveKind::reduce_scatter) {
      range = call.counts.empty() ? rows_of(call.rows, size, rank) : part_of(call.counts, rank);
      range = {range.begin * call.row_elements, range.end * call.row_elements};
    }
    if (element >= range.begin && element < range.end) return rank;
  }
  return 0;
}

}  // namespace

Values random_values(DType dtype, std::size_t count, SimRandom& random) {
  Values values(count * size_of(dtype));
  for (auto& byte : values) byte = static_cast<std::byte>(random.next());
  const auto* scalar = simd::find("scalar");
  for (std::size_t i = 0; i < count; ++i) {
    const double number = random_number(random);
    const auto single = static_cast<float>(number);
    if (dtype == DType::boolean) values[i] = static_cast<std::byte>(random.below(2));
    if (dtype == DType::f64) put(values, i, number);
    if (dtype == DType::f32) put(values, i, single);
    if (dtype == DType::complex128) put(values, i, Complex128(number, random_number(random)));
    if (dtype == DType::complex64) put(values, i, Complex64(single, static_cast<float>(random_number(random))));
    if (is_narrow(dtype)) scalar->cast(DType::f32, dtype)(values.data() + i * 2, reinterpret_cast<const std::byte*>(&single), 1);
  }
  return values;
}

namespace {

/// Returns the sums of the ranks of one machine.
Values sum_of_machine(const Call& call, const std::vector<Values>& inputs, const Topology& topology, const std::vector<int>& ranks) {
  if (ranks.size() == 1) return inputs[static_cast<std::size_t>(ranks[0])];
  const auto count = static_cast<int>(ranks.size());
  const MachineLimits& limits = topology.machine_limits();
  std::size_t leads = ranks.size();
  for (int machine = 0; machine < topology.machines(); ++machine) leads = std::min(leads, topology.ranks_on(machine).size());
  leads = std::clamp<std::size_t>(call.bytes() / std::max<std::size_t>(limits.slice_bytes, 1), 1, leads);
  const bool is_chained = call.kind == CollectiveKind::all_reduce && call.bytes() > limits.chain_bytes;
  const auto added = [&](int first) {
    std::vector<Values> in_order;
    for (int step = 0; step < count; ++step)
      in_order.push_back(inputs[static_cast<std::size_t>(ranks[static_cast<std::size_t>((first + step) % count)])]);
    Call sum = call;
    sum.divisor = 1.0;
    sum.algorithm = Algorithm::direct;
    if (!is_chained) return reduced(sum, in_order, {});
    Values so_far = in_order[0];
    for (std::size_t step = 1; step < in_order.size(); ++step) so_far = reduced(sum, {so_far, in_order[step]}, {});
    return so_far;
  };
  if (!is_chained) return added(0);
  Values all(inputs[0].size());
  for (int slice = 0; slice < static_cast<int>(leads); ++slice) {
    const ElementRange range = part_of(call.elements(), static_cast<int>(leads), slice);
    const Values values = added(slice + 1);
    const auto begin = static_cast<std::ptrdiff_t>(range.begin * size_of(call.dtype));
    const auto end = static_cast<std::ptrdiff_t>(range.end * size_of(call.dtype));
    std::copy(values.begin() + begin, values.begin() + end, all.begin() + begin);
  }
  return all;
}

}  // namespace

Values reduced(const Call& call, const std::vector<Values>& inputs, const Topology& topology) {
  if (call.algorithm == Algorithm::machines) {
    std::vector<Values> sums;
    for (int machine = 0; machine < topology.machines(); ++machine)
      sums.push_back(sum_of_machine(call, inputs, topology, topology.ranks_on(machine)));
    Call last = call;
    last.algorithm = Algorithm::direct;
    return reduced(last, sums, {});
  }
  const auto* scalar = simd::find("scalar");
  const int size = static_cast<int>(inputs.size());
  const std::size_t width = size_of(call.dtype);
  const auto reduce = scalar->reduce(call.dtype, call.op);
  const bool ring = call.algorithm == Algorithm::ring;
  const bool widen = !ring && is_narrow(call.dtype) && (call.op == ReduceOp::sum || call.op == ReduceOp::prod);
  Values out(inputs[0].size());
  for (std::size_t element = 0; element < call.elements(); ++element) {
    std::byte* into = out.data() + element * width;
    const int owner = ring ? owner_of(call, element, size) : 0;
    const auto value_of = [&](int step) {
      const int rank = ring ? topology.along_ring(owner, step + 1, size) : step;
      return inputs[static_cast<std::size_t>(rank)].data() + element * width;
    };
    if (widen) {
      float sum;
      float next;
      scalar->cast(call.dtype, DType::f32)(reinterpret_cast<std::byte*>(&sum), value_of(0), 1);
      for (int step = 1; step < size; ++step) {
        scalar->cast(call.dtype, DType::f32)(reinterpret_cast<std::byte*>(&next), value_of(step), 1);
        sum = call.op == ReduceOp::sum ? sum + next : sum * next;
      }
      if (call.divisor != 1.0) sum /= static_cast<float>(call.divisor);
      scalar->cast(DType::f32, call.dtype)(into, reinterpret_cast<const std::byte*>(&sum), 1);
    } else {
      std::memcpy(into, value_of(0), width);
      for (int step = 1; step < size; ++step) reduce(into, into, value_of(step), 1);
      if (call.divisor != 1.0) scalar->divide(call.dtype)(into, 1, call.divisor);
    }
    if (size > 1 && scalar->canonical_nan(call.dtype) != nullptr) scalar->canonical_nan(call.dtype)(into, 1);
  }
  return out;
}

}  // namespace ringlet::test
