// In the order of the ranks, averages have the bits of a plain loop, however they are divided into buckets or shards.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>

#include "core/gradients/averager.hpp"
#include "core/sharding/fsdp_step.hpp"
#include "tests/core/operation.hpp"
#include "tests/core/procedures.hpp"
#include "tests/core/reference.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// One rank's memory of a tree.
struct Leaves {
  std::deque<Values> memory;
  Tree tree;

  void add(DType dtype, const Shape& shape, Values values) {
    memory.push_back(std::move(values));
    memory.back().reserve(1);
    tree.add("g" + std::to_string(tree.size()), TensorView(memory.back().data(), dtype, shape));
  }
};

/// Gradients of all ranks, with infinities and NaNs among them, and their means by a plain loop over the ranks.
class Gradients {
 public:
  Gradients(SimRandom& random, int ranks) : ranks_(ranks) {
    dtype_ = pick(random, {DType::f16, DType::bf16, DType::f32, DType::f32, DType::f64, DType::complex64, DType::complex128});
    if (is_real(dtype_) && random.chance(600)) {
      const BlockOptions blocks{.least_elements = pick<std::size_t>(random, {0, 100})};
      wire_ = pick(random, {Wire(DType::f16), Wire(DType::bf16), Wire::int8(blocks), Wire::int4(blocks)});
    }
    for (std::uint64_t i = 0, count = 1 + random.below(8); i < count; ++i) {
      shapes_.push_back(
          Shape{static_cast<std::int64_t>(random.below(random.chance(200) ? 900 : 40)), static_cast<std::int64_t>(1 + random.below(4))});
      inputs_.emplace_back();
      for (int rank = 0; rank < ranks; ++rank) inputs_.back().push_back(random_values(dtype_, shapes_.back().count(), random));
      means_.push_back(mean_of(inputs_.back()));
    }
  }

  const std::optional<Wire>& wire() const { return wire_; }
  /// What FSDP makes of them where these ranks have these rows: a mean in blocks is not rounded once more.
  void reduce_in_shards(const ShardLayout& layout) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (in_blocks(shapes_[i].count())) means_[i] = mean_of_shards(i, layout);
  }
  Leaves of_rank(int rank) const {
    Leaves leaves;
    for (std::size_t i = 0; i < shapes_.size(); ++i) leaves.add(dtype_, shapes_[i], inputs_[i][static_cast<std::size_t>(rank)]);
    return leaves;
  }
  void check(const std::deque<Values>& memory) const {
    for (std::size_t i = 0; i < means_.size(); ++i) {
      INFO("gradient " << i << ' ' << to_string(shapes_[i]) << ' ' << name_of(dtype_) << " by " << (wire_ ? name_of(*wire_) : "its own"));
      REQUIRE(memory[i] == means_[i]);
    }
  }

 private:
  static Values cast(DType from, DType to, const Values& values) {
    if (from == to) return values;
    Values out(values.size() / size_of(from) * size_of(to));
    simd::find("scalar")->cast(from, to)(out.data(), values.data(), values.size() / size_of(from));
    return out;
  }
  Values mean_of(const std::vector<Values>& inputs) const {
    const std::size_t count = inputs[0].size() / size_of(dtype_);
    if (in_blocks(count)) return mean_in_blocks(inputs);
    Call call;
    call.kind = CollectiveKind::all_reduce;
    call.algorithm = Algorithm::direct;
    call.dtype = wire_ ? wire_->dtype() : dtype_;
    call.rows = count;
    call.divisor = ranks_;
    std::vector<Values> on_wire;
    for (const Values& values : inputs) on_wire.push_back(cast(dtype_, call.dtype, values));
    return cast(call.dtype, dtype_, reduced(call, on_wire, {}));
  }

  bool in_blocks(std::size_t count) const { return wire_ && wire_->blocks() && count >= wire_->options().least_elements; }

  /// Rounds f32 to blocks.
  void round(Values& values) const {
    const auto* scalar = simd::find("scalar");
    const BlockFormat format = *wire_->blocks();
    const std::size_t count = values.size() / sizeof(float);
    Values blocks((count + block_elements(format) - 1) / block_elements(format) * block_bytes(format));
    scalar->encode(format)(blocks.data(), values.data(), count);
    scalar->decode(format)(values.data(), blocks.data(), count);
  }

  /// Each rank's values, of f32, are divided and rounded once, and added in the order of the ranks.
  Values sum_in_blocks(const std::vector<Values>& inputs) const {
    Values sum;
    for (Values own : inputs) {
      simd::find("scalar")->multiply(DType::f32)(own.data(), own.size() / sizeof(float), 1.0 / ranks_);
      round(own);
      if (sum.empty())
        sum = std::move(own);
      else
        simd::find("scalar")->reduce(DType::f32, ReduceOp::sum)(sum.data(), sum.data(), own.data(), sum.size() / sizeof(float));
    }
    return sum;
  }

  /// The sum is rounded once more.
  Values mean_in_blocks(const std::vector<Values>& inputs) const {
    std::vector<Values> wide;
    for (const Values& own : inputs) wide.push_back(cast(dtype_, DType::f32, own));
    Values sum = sum_in_blocks(wide);
    round(sum);
    return cast(DType::f32, dtype_, sum);
  }

  /// Each owner's rows begin with a block, and are not rounded once more.
  Values mean_of_shards(std::size_t gradient, const ShardLayout& layout) const {
    const Shape& shape = shapes_[gradient];
    Values mean;
    for (int owner = 0; owner < layout.ranks(); ++owner) {
      const RowRange rows = layout.rows("g" + std::to_string(gradient), owner);
      const std::size_t row_bytes = static_cast<std::size_t>(shape[1]) * size_of(dtype_);
      const auto at = [&](const Values& all, std::int64_t row) { return all.begin() + row * static_cast<std::ptrdiff_t>(row_bytes); };
      std::vector<Values> parts;
      for (const Values& own : inputs_[gradient]) parts.push_back(cast(dtype_, DType::f32, Values(at(own, rows.begin), at(own, rows.end))));
      Values sum = sum_in_blocks(parts);
      simd::find("scalar")->canonical_nan(DType::f32)(sum.data(), sum.size() / sizeof(float));
      const Values part = cast(DType::f32, dtype_, sum);
      mean.insert(mean.end(), part.begin(), part.end());
    }
    return mean;
  }

  int ranks_;
  DType dtype_;
  std::optional<Wire> wire_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<Values>> inputs_;  // by gradient, then rank
  std::vector<Values> means_;
};

GroupSetup in_rank_order(SimRandom& random, std::uint64_t seed) {
  GroupSetup setup;
  setup.size = static_cast<int>(2 + seed % 7);
  setup.seed = seed;
  if (random.chance(500)) setup.paths = rough_paths();
  if (random.chance(400)) setup.world.guests = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
  setup.world.limits = {random.below(2) * 200, random.below(3) * 1000};
  setup.world.placement.order = ReduceOrder::rank;
  setup.world.placement.policy = static_cast<PlacementPolicy>(random.below(kPlacementPolicyCount));
  return setup;
}

/// Takes the averages as new parameters.
Status take(const Tree& gradients, const Tree& parameters) {
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].values.bytes() > 0) std::memcpy(parameters[i].values.data(), gradients[i].values.data(), gradients[i].values.bytes());
  return {};
}

}  // namespace

TEST_CASE("averages have the bits of a plain loop over the ranks, by any buckets") {
  for (const auto seed : seeds(70)) {
    CAPTURE(seed);
    SimRandom random(seed * 19 + 3);
    ProcedureWorld world(in_rank_order(random, seed));
    const Gradients gradients(random, world.size());
    for (const std::int64_t bucket_bytes : {-1, 64, 1000, 32 << 20}) {
      CAPTURE(world.size(), bucket_bytes);
      std::deque<Leaves> leaves;
      for (int rank = 0; rank < world.size(); ++rank) leaves.push_back(gradients.of_rank(rank));
      REQUIRE(world.run([&](int rank) {
        const AverageOptions options{.all_reduce_size = bucket_bytes, .communication_type = gradients.wire()};
        return std::make_shared<TreeAverage>(world.engine(rank), world.agreements(rank), leaves[static_cast<std::size_t>(rank)].tree,
                                             options);
      }));
      REQUIRE(world.failure() == "");
      for (const Leaves& own : leaves) gradients.check(own.memory);
    }
    world.group().close_cleanly();
  }
}

TEST_CASE("FSDP's averages have the bits of a plain loop over the ranks, by any shards") {
  for (const auto seed : seeds(70)) {
    CAPTURE(seed);
    SimRandom random(seed * 23 + 4);
    ProcedureWorld world(in_rank_order(random, seed));
    Gradients gradients(random, world.size());
    for (const std::int64_t communication_size : {0, 100, 32 << 20}) {
      CAPTURE(world.size(), communication_size);
      FsdpSettings settings{.communication_size = communication_size, .reduce_dtype = gradients.wire()};
      if (random.chance(300))
        for (int rank = 0; rank < world.size(); ++rank)
          settings.shard_weights.push_back(rank == 0 ? 1 : static_cast<double>(random.below(3)));
      gradients.reduce_in_shards(ShardLayout(gradients.of_rank(0).tree, world.size(), settings.shard_weights));
      std::deque<Leaves> leaves, parameters;
      std::deque<FsdpStep> steps;
      for (int rank = 0; rank < world.size(); ++rank) {
        leaves.push_back(gradients.of_rank(rank));
        parameters.push_back(gradients.of_rank(0));
        steps.emplace_back(world.engine(rank), world.agreements(rank), nullptr, settings);
      }
      for (int rank = 0; rank < world.size(); ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        steps[r].begin(leaves[r].tree, parameters[r].tree, take);
        world.start(rank, std::shared_ptr<Procedure>(&steps[r], [](Procedure*) {}), {&world.engine(rank)});
      }
      REQUIRE(world.run_until_ended());
      REQUIRE(world.failure() == "");
      for (const Leaves& own : parameters) gradients.check(own.memory);
    }
    world.group().close_cleanly();
  }
}
