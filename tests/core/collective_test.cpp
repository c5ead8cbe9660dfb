#include <catch2/catch.hpp>
#include <cstring>
#include <iostream>
#include <set>

#include "core/plan/chunk_layout.hpp"
#include "tests/core/reference.hpp"
#include "tests/core/seeds.hpp"
#include "tests/core/sim_group.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// One collective on all ranks: what goes in, what must come out.
struct Operation {
  Call call;
  std::uint16_t stream = 0;
  bool in_place = false;
  std::vector<Values> inputs;    // by rank
  std::vector<Values> outputs;   // by rank
  std::vector<Values> expected;  // by rank
  std::vector<Outcome*> outcomes;
  Shape shape{};
};

template <class T>
T pick(SimRandom& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

std::size_t random_rows(SimRandom& random, std::size_t largest) {
  if (random.below(8) != 0) return random.below(41);
  return random.below(4) != 0 ? random.below(3000) : random.below(largest);
}

ConstTensorView input_view(const Operation& operation, int rank) {
  const Values& input = operation.inputs[static_cast<std::size_t>(rank)];
  return {input.data(), operation.call.dtype, operation.shape};
}

TensorView output_view(Operation& operation, int rank) {
  Values& output = operation.outputs[static_cast<std::size_t>(rank)];
  return {output.data(), operation.call.dtype, output.size() / size_of(operation.call.dtype)};
}

Result<CollectiveTask> make_task(Operation& operation, int rank, const WorldOptions& options) {
  const Call& call = operation.call;
  const TensorView output = output_view(operation, rank);
  switch (call.kind) {
    case CollectiveKind::all_reduce: {
      const ConstTensorView input = operation.in_place ? ConstTensorView(output) : input_view(operation, rank);
      return make_all_reduce(call.op, input, output, call.divisor, options);
    }
    case CollectiveKind::reduce_scatter:
      return make_reduce_scatter(call.op, input_view(operation, rank), output, options);
    case CollectiveKind::all_gather: {
      const std::size_t own = operation.inputs[0].size();
      const ConstTensorView part(output.data() + static_cast<std::size_t>(rank) * own, call.dtype, own / size_of(call.dtype));
      return make_all_gather(operation.in_place ? part : input_view(operation, rank), output, options);
    }
    case CollectiveKind::broadcast:
      return make_broadcast(output, call.root, options);
    case CollectiveKind::barrier:
      break;
  }
  return make_barrier(options);
}

void expect_results(Operation& operation, const WorldOptions& options) {
  const auto size = static_cast<std::size_t>(options.size);
  Call& call = operation.call;
  const std::size_t bytes = call.bytes();
  call.algorithm =
      choose_algorithm(call.kind, call.kind == CollectiveKind::all_gather ? bytes * size : bytes, options.size, options.limits);
  const bool reduces = call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::reduce_scatter;
  const Values sum = reduces ? reduced(call, operation.inputs) : Values{};
  Values all;
  for (const auto& input : operation.inputs) all.insert(all.end(), input.begin(), input.end());
  for (std::size_t rank = 0; rank < size; ++rank) {
    Values expected;
    Values output;
    switch (call.kind) {
      case CollectiveKind::all_reduce:
        expected = sum;
        output = operation.in_place ? operation.inputs[rank] : Values(bytes);
        break;
      case CollectiveKind::reduce_scatter: {
        const ElementRange rows = rows_of(call.rows, options.size, static_cast<int>(rank));
        const auto width = static_cast<std::ptrdiff_t>(call.row_elements * size_of(call.dtype));
        expected.assign(sum.begin() + static_cast<std::ptrdiff_t>(rows.begin) * width,
                        sum.begin() + static_cast<std::ptrdiff_t>(rows.end) * width);
        output.resize(expected.size());
        break;
      }
      case CollectiveKind::all_gather:
        expected = all;
        output.resize(all.size());
        if (operation.in_place && bytes > 0) std::memcpy(output.data() + rank * bytes, operation.inputs[rank].data(), bytes);
        break;
      case CollectiveKind::broadcast:
        expected = operation.inputs[static_cast<std::size_t>(call.root)];
        output = operation.inputs[rank];
        break;
      case CollectiveKind::barrier:
        break;
    }
    operation.expected.push_back(std::move(expected));
    operation.outputs.push_back(std::move(output));
  }
}

Operation random_operation(SimRandom& random, const WorldOptions& options, std::size_t largest) {
  Operation operation;
  Call& call = operation.call;
  call.kind = static_cast<CollectiveKind>(pick(random, {0, 0, 0, 1, 1, 2, 3, 4}));
  operation.stream = static_cast<std::uint16_t>(random.below(3));
  operation.in_place = random.below(2) != 0;
  if (call.kind == CollectiveKind::barrier) {
    call.rows = 0;
    operation.inputs.resize(static_cast<std::size_t>(options.size));
  } else {
    call.dtype = static_cast<DType>(random.below(kDTypeCount));
    call.rows = random_rows(random, largest / size_of(call.dtype));
    operation.shape = Shape{static_cast<std::int64_t>(call.rows)};
    if (call.kind == CollectiveKind::broadcast)
      call.root = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(options.size)));
    if (call.kind == CollectiveKind::all_reduce) {
      call.op = static_cast<ReduceOp>(random.below(4));
      if (call.op == ReduceOp::sum && is_floating(call.dtype) && random.below(2) != 0) call.divisor = options.size;
    }
    if (call.kind == CollectiveKind::reduce_scatter) {
      call.op = pick(random, {ReduceOp::sum, ReduceOp::max, ReduceOp::min});
      if (random.below(2) != 0) {
        call.row_elements = random.below(7);
        operation.shape = Shape{static_cast<std::int64_t>(call.rows), static_cast<std::int64_t>(call.row_elements)};
      }
    }
    for (int rank = 0; rank < options.size; ++rank) operation.inputs.push_back(random_values(call.dtype, call.elements(), random));
  }
  expect_results(operation, options);
  return operation;
}

WorldOptions random_options(SimRandom& random, int size) {
  WorldOptions options;
  options.size = size;
  if (random.below(2) != 0) {
    options.segment_bytes = pick<std::size_t>(random, {8, 24, 100, 1000, 4096});
    options.eager_bytes = pick<std::size_t>(random, {0, 16, 300, 5000});
    options.eager_window_bytes = pick<std::size_t>(random, {512, 600, 2000, 20000});
    options.session.receive_buffer_bytes = pick<std::size_t>(random, {128, 200, 1000, 16384});
    options.session.batch_bytes = pick<std::size_t>(random, {1, 500, 100000});
  }
  options.limits.exchange_bytes = pick<std::size_t>(random, {0, 64, 1000, 32 << 10});
  options.limits.direct_bytes = options.limits.exchange_bytes + pick<std::size_t>(random, {0, 100, 2000, 256 << 10});
  return options;
}

void check_operation(const Operation& operation, int size) {
  CAPTURE(describe(operation.call), operation.in_place, operation.stream);
  for (int rank = 0; rank < size; ++rank) {
    CAPTURE(rank);
    const auto r = static_cast<std::size_t>(rank);
    const Outcome& outcome = *operation.outcomes[r];
    INFO(outcome.status.text());
    REQUIRE(outcome.completions == 1);
    REQUIRE(outcome.status.ok());
    REQUIRE(operation.outputs[r] == operation.expected[r]);
    if (operation.call.kind != CollectiveKind::barrier) continue;
    for (const Outcome* other : operation.outcomes) REQUIRE(outcome.ended >= other->started);
  }
}

std::uint64_t run_seed(std::uint64_t seed, std::size_t largest, int operation_count) {
  SimRandom random(seed * 2 + 1);
  GroupSetup setup;
  setup.size = static_cast<int>(1 + random.below(8));
  setup.seed = seed;
  setup.with_roster = random.below(2) != 0;
  if (random.below(2) != 0) setup.paths = rough_paths();
  setup.world = random_options(random, setup.size);
  SimGroup group(setup);
  group.meet();
  std::vector<Operation> operations;
  for (int i = 0; i < operation_count; ++i) operations.push_back(random_operation(random, setup.world, largest));
  const auto lag = random.below(3) * 300;
  for (int rank = 0; rank < setup.size; ++rank) {
    Duration delay{};
    for (auto& operation : operations) {
      operation.outcomes.resize(static_cast<std::size_t>(setup.size));
      if (random.below(2) != 0) delay = Duration{delay.nanoseconds + static_cast<std::int64_t>(random.below(lag * 1000 + 1))};
      group.node(rank).loop().after(delay, [&group, &operation, rank] {
        operation.outcomes[static_cast<std::size_t>(rank)] =
            &group.start(rank, operation.stream, make_task(operation, rank, group.options(rank)));
      });
    }
  }
  const auto finished = [&] {
    for (const auto& operation : operations)
      for (const Outcome* outcome : operation.outcomes)
        if (outcome == nullptr || !outcome->done()) return false;
    return true;
  };
  REQUIRE(group.sim().run_until(finished, {.time = Duration::seconds(3000)}) == RunEnd::done);
  for (const auto& operation : operations) check_operation(operation, setup.size);
  group.close_cleanly();
  return group.sim().trace_hash();
}

}  // namespace

TEST_CASE("random collectives give the promised bits on every rank") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    run_seed(seed, 20'000, 30);
  }
}

TEST_CASE("large collectives give the promised bits on every rank") {
  for (const auto seed : seeds(12)) {
    CAPTURE(seed);
    run_seed(seed + 1000, 2 << 20, 6);
  }
}

TEST_CASE("the same seed gives the same trace") {
  for (const auto seed : seeds(10)) {
    CAPTURE(seed);
    CHECK(run_seed(seed, 5'000, 10) == run_seed(seed, 5'000, 10));
  }
}

// All kinds x operations x dtypes x counts 0..40 for 1 to 8 ranks, dealt out over 200 seeds: each seed has its own network and limits.
TEST_CASE("every kind, operation, dtype and small count gives the promised bits with every number of ranks") {
  constexpr std::uint64_t kSeedsPerSize = 25;
  constexpr std::size_t kCounts = 41;
  struct Variant {
    CollectiveKind kind;
    ReduceOp op;
    bool mean;
  };
  std::vector<Variant> variants{{CollectiveKind::all_gather, ReduceOp::sum, false}, {CollectiveKind::broadcast, ReduceOp::sum, false}};
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
    variants.push_back({CollectiveKind::all_reduce, op, false});
    if (op != ReduceOp::prod) variants.push_back({CollectiveKind::reduce_scatter, op, false});
  }
  variants.push_back({CollectiveKind::all_reduce, ReduceOp::sum, true});

  for (const auto seed : seeds(8 * kSeedsPerSize)) {
    CAPTURE(seed);
    SimRandom random(seed + 7000);
    GroupSetup setup;
    setup.size = static_cast<int>(1 + seed % 8);
    setup.seed = seed;
    setup.paths = rough_paths();
    setup.world = random_options(random, setup.size);
    SimGroup group(setup);
    group.meet();
    std::deque<Operation> operations;
    for (std::uint64_t combination = seed / 8; combination < variants.size() * kDTypeCount * kCounts; combination += kSeedsPerSize) {
      const Variant variant = variants[combination / (kDTypeCount * kCounts)];
      Operation operation;
      Call& call = operation.call;
      call.kind = variant.kind;
      call.op = variant.op;
      call.dtype = static_cast<DType>(combination / kCounts % kDTypeCount);
      call.rows = combination % kCounts;
      if (variant.mean && !is_floating(call.dtype)) continue;
      if (variant.mean) call.divisor = setup.size;
      if (call.kind == CollectiveKind::broadcast)
        call.root = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(setup.size)));
      operation.shape = Shape{static_cast<std::int64_t>(call.rows)};
      operation.in_place = random.below(2) != 0;
      for (int rank = 0; rank < setup.size; ++rank) operation.inputs.push_back(random_values(call.dtype, call.elements(), random));
      expect_results(operation, setup.world);
      operations.push_back(std::move(operation));
    }
    for (auto& operation : operations)
      for (int rank = 0; rank < setup.size; ++rank)
        operation.outcomes.push_back(&group.start(rank, 0, make_task(operation, rank, group.options(rank))));
    REQUIRE(group.run_until_done());
    for (const auto& operation : operations) check_operation(operation, setup.size);
    group.close_cleanly();
  }
}
