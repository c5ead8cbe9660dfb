// Tests of FSDP whose gradients cross the network in blocks: their bytes, their bits, and what rounding leaves for the next step.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>

#include "core/sharding/fsdp_step.hpp"
#include "tests/core/operation.hpp"
#include "tests/core/procedures.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Floats = std::vector<float>;

/// One rank's gradients and parameters, each a matrix, and its FSDP.
struct BlockRank {
  BlockRank(const std::vector<Shape>& shapes, const GroupEngine& group, Agreements& agreements, const WorldOptions* replicas,
            const FsdpSettings& settings)
      : step(group, agreements, replicas, settings) {
    for (const Shape& shape : shapes) {
      const std::string name = "g" + std::to_string(gradients.size());
      for (auto [memory, tree] : {std::pair(&values, &gradients), std::pair(&means, &parameters)}) {
        memory->emplace_back(shape.count());
        memory->back().reserve(1);
        tree->add(name, TensorView(memory->back().data(), DType::f32, shape));
      }
    }
  }
  BlockRank(const BlockRank&) = delete;
  BlockRank& operator=(const BlockRank&) = delete;

  std::deque<Floats> values, means;  // by tensor; the optimizer takes the means as new parameters
  Tree gradients, parameters;
  FsdpStep step;
};

/// The same by plain loops, with one rank's residuals after another.
class PlainReduction {
 public:
  PlainReduction(const std::vector<Shape>& shapes, int ranks, Wire wire) : ranks_(ranks), wire_(wire) {
    for (const Shape& shape : shapes) residuals_.emplace_back(static_cast<std::size_t>(ranks), Floats(shape.count()));
  }

  /// The mean of a tensor, of which rank `owner` has these elements. If the step is not committed, residuals stay.
  void reduce(std::size_t tensor, std::size_t begin, std::size_t end, const std::vector<const float*>& by_rank, float* mean, bool commits) {
    const auto* scalar = simd::find("scalar");
    const std::size_t count = end - begin;
    const BlockFormat format = *wire_.blocks();
    std::vector<std::byte> blocks((count + block_elements(format) - 1) / block_elements(format) * block_bytes(format));
    std::fill_n(mean + begin, count, -0.0F);
    for (int rank = 0; rank < ranks_; ++rank) {
      Floats& residual = residuals_[tensor][static_cast<std::size_t>(rank)];
      Floats own(by_rank[static_cast<std::size_t>(rank)] + begin, by_rank[static_cast<std::size_t>(rank)] + end), decoded(count);
      scalar->multiply(DType::f32)(bytes(own), count, 1.0 / ranks_);
      for (std::size_t i = 0; i < count && wire_.options().feedback; ++i) own[i] += residual[begin + i];
      scalar->encode(format)(blocks.data(), bytes(own), count);
      scalar->decode(format)(bytes(decoded), blocks.data(), count);
      for (std::size_t i = 0; i < count; ++i) mean[begin + i] += decoded[i];
      for (std::size_t i = 0; i < count && commits; ++i) residual[begin + i] = own[i] - decoded[i];
    }
  }

 private:
  static std::byte* bytes(Floats& values) { return reinterpret_cast<std::byte*>(values.data()); }

  int ranks_;
  Wire wire_;
  std::vector<std::vector<Floats>> residuals_;  // by tensor, then rank
};

Status take_means(const Tree& gradients, const Tree& parameters) {
  for (std::size_t i = 0; i < gradients.size(); ++i) copy(gradients[i].values, parameters[i].values);
  return {};
}

std::vector<Shape> random_matrices(SimRandom& random) {
  std::vector<Shape> shapes;
  for (std::uint64_t i = 0, count = 1 + random.below(5); i < count; ++i)
    shapes.push_back(
        Shape{static_cast<std::int64_t>(random.below(random.chance(300) ? 400 : 30)), static_cast<std::int64_t>(1 + random.below(9))});
  return shapes;
}

/// Takes a step on all ranks and returns its failure.
std::string take_step(ProcedureWorld& world, std::deque<BlockRank>& ranks, const FsdpStep::Apply& apply) {
  for (int rank = 0; rank < world.size(); ++rank) {
    BlockRank& own = ranks[static_cast<std::size_t>(rank)];
    own.step.begin(own.gradients, own.parameters, apply);
    world.start(rank, std::shared_ptr<Procedure>(&own.step, [](Procedure*) {}), {&world.engine(rank)});
  }
  REQUIRE(world.run_until_ended());
  return world.failure();
}

}  // namespace

TEST_CASE("FSDP in blocks has the bits of plain loops, with what rounding has left of the steps before that were committed") {
  for (const auto seed : seeds(80)) {
    CAPTURE(seed);
    SimRandom random(seed * 29 + 5);
    GroupSetup setup;
    setup.size = static_cast<int>(1 + seed % 8);
    setup.seed = seed;
    if (random.chance(400)) setup.paths = rough_paths();
    if (random.chance(300)) setup.world.guests = static_cast<int>(random.below(static_cast<std::uint64_t>(setup.size)));
    setup.world.limits = {random.below(2) * 200, random.below(3) * 1000};
    ProcedureWorld world(setup);
    const BlockOptions blocks{.feedback = random.chance(800), .least_elements = 0};
    const Wire wire = random.chance(500) ? Wire::int8(blocks) : Wire::int4(blocks);
    FsdpSettings settings{.communication_size = pick<std::int64_t>(random, {0, 300, 32 << 20}), .reduce_dtype = wire};
    if (random.chance(300))
      for (int rank = 0; rank < world.size(); ++rank)
        settings.shard_weights.push_back(rank == 0 ? 1 : static_cast<double>(random.below(3)));
    const std::vector<Shape> shapes = random_matrices(random);
    std::deque<BlockRank> ranks;
    for (int rank = 0; rank < world.size(); ++rank)
      ranks.emplace_back(shapes, world.engine(rank), world.agreements(rank), nullptr, settings);
    PlainReduction plain(shapes, world.size(), wire);
    const ShardLayout layout(ranks[0].gradients, world.size(), settings.shard_weights);
    for (int turn = 0; turn < 5; ++turn) {
      for (BlockRank& rank : ranks)
        for (Floats& values : rank.values)
          for (float& value : values)
            value = (static_cast<float>(random.below(2001)) - 1000) * (random.chance(50) ? 1.0F : 0.001F) / static_cast<float>(1 + turn);
      const bool commits = random.chance(700);
      const std::string failure = take_step(world, ranks, [&](const Tree& gradients, const Tree& parameters) {
        return commits ? take_means(gradients, parameters) : Status(Errc::invalid_argument, "not committed");
      });
      REQUIRE(failure == (commits ? "" : "not committed"));
      for (std::size_t tensor = 0; tensor < shapes.size(); ++tensor) {
        Floats mean(shapes[tensor].count());
        std::vector<const float*> by_rank;
        for (BlockRank& rank : ranks) by_rank.push_back(rank.values[tensor].data());
        // A rank that is alone sends nothing, and so rounds nothing.
        if (world.size() == 1) mean = ranks[0].values[tensor];
        for (int owner = 0; owner < world.size() && world.size() > 1; ++owner) {
          const RowRange rows = layout.rows("g" + std::to_string(tensor), owner);
          const auto row = static_cast<std::size_t>(shapes[tensor][1]);
          plain.reduce(tensor, static_cast<std::size_t>(rows.begin) * row, static_cast<std::size_t>(rows.end) * row, by_rank, mean.data(),
                       commits);
        }
        if (!commits) continue;
        for (BlockRank& rank : ranks)
          REQUIRE((mean.empty() || std::memcmp(rank.means[tensor].data(), mean.data(), mean.size() * sizeof(float)) == 0));
      }
    }
    if (world.size() > 1) world.group().close_cleanly();
  }
}

TEST_CASE("FSDP's reduction puts a block's byte per element on the links, and its share of the scale") {
  const int size = GENERATE(2, 4);
  constexpr std::int64_t kRows = 1 << 12, kRow = 256;
  const auto bytes_per_element = [&](const std::optional<Wire>& wire) {
    ProcedureWorld world({.size = size, .seed = 8});
    std::deque<BlockRank> ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.emplace_back(std::vector<Shape>{Shape{kRows, kRow}}, world.engine(rank), world.agreements(rank), nullptr,
                         FsdpSettings{.reduce_dtype = wire});
    const auto sent = [&] {
      std::uint64_t most = 0;
      for (int rank = 0; rank < size; ++rank) most = std::max(most, world.group().world(rank).state().bytes_sent);
      return most;
    };
    const std::uint64_t before = sent();
    REQUIRE(take_step(world, ranks, take_means) == "");
    const double each = static_cast<double>(sent() - before) / static_cast<double>(kRows * kRow);
    world.group().close_cleanly();
    return each;
  };
  const double share = static_cast<double>(size - 1) / size, parameters = share * 4;
  CHECK(bytes_per_element({}) == Approx(share * 4 + parameters).epsilon(0.01));
  CHECK(bytes_per_element(DType::bf16) == Approx(share * 2 + parameters).epsilon(0.01));
  CHECK(bytes_per_element(Wire::int8()) == Approx(share * 65 / 64 + parameters).epsilon(0.01));
  CHECK(bytes_per_element(Wire::int4()) == Approx(share * 17 / 32 + parameters).epsilon(0.01));
}

TEST_CASE("FSDP sends tensors below the limit as bf16, and buckets of blocks have 2 MiB at most") {
  const BlockOptions blocks{.least_elements = 100};
  const std::vector<Shape> shapes{Shape{33, 3}, Shape{25, 4}};
  ProcedureWorld world({.size = 2, .seed = 9});
  std::deque<BlockRank> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back(shapes, world.engine(rank), world.agreements(rank), nullptr, FsdpSettings{.reduce_dtype = Wire::int4(blocks)});
  for (BlockRank& rank : ranks)
    for (Floats& values : rank.values) {
      // 1 + 1/128 is a bf16 but not a multiple of a block's step where the largest element is 1.5.
      std::fill(values.begin(), values.end(), 1.0078125F);
      values.front() = 1.5F;
      values.back() = 1.5F;
    }
  REQUIRE(take_step(world, ranks, take_means) == "");
  for (const BlockRank& rank : ranks) {
    CHECK(rank.means[0][1] == 1.0078125F);
    CHECK(rank.means[1][1] != 1.0078125F);
  }
  world.group().close_cleanly();

  std::vector<float> large(1'500'000);
  Tree tree;
  for (const char* name : {"a", "b", "c", "d"}) tree.add(name, large);
  const auto buckets = [&](std::int64_t size, const std::optional<Wire>& wire) {
    return make_buckets(tree, ShardLayout(tree, 3), size, wire).size();
  };
  CHECK(buckets(32 << 20, Wire::int8()) == 2);  // of two tensors, 1.5 MB each
  CHECK(buckets(INT64_MAX, Wire::int4()) == 2);
  CHECK(buckets(1 << 20, Wire::int8()) == 4);
  CHECK(buckets(0, Wire::int8()) == 4);
  CHECK(buckets(32 << 20, DType::bf16) == 1);
}

TEST_CASE("NaNs and infinities reach the rows that have them, and no others; nothing of them is left for the next step") {
  const BlockFormat format = GENERATE(BlockFormat::int8, BlockFormat::int4);
  ProcedureWorld world({.size = 3, .seed = 10});
  std::deque<BlockRank> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back(std::vector<Shape>{Shape{90, 1}}, world.engine(rank), world.agreements(rank), nullptr,
                       FsdpSettings{.reduce_dtype = Wire::in_blocks(format, {.feedback = true, .least_elements = 0})});
  // A third of 6 is a multiple of the steps of all blocks here.
  for (BlockRank& rank : ranks) std::fill(rank.values[0].begin(), rank.values[0].end(), 6.0F);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ranks[0].values[0][5] = std::numeric_limits<float>::quiet_NaN();
  ranks[1].values[0][40] = kInfinity;
  ranks[2].values[0][41] = -kInfinity;
  ranks[1].values[0][80] = kInfinity;
  ranks[2].values[0][80] = -kInfinity;
  REQUIRE(take_step(world, ranks, take_means) == "");
  constexpr std::uint32_t kCanonicalNan = 0x7fc00000;
  for (const BlockRank& rank : ranks) {
    const Floats& means = rank.means[0];
    for (const std::size_t nan : {std::size_t{5}, std::size_t{80}}) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &means[nan], sizeof bits);
      CHECK(bits == kCanonicalNan);
    }
    CHECK((means[40] == kInfinity && means[41] == -kInfinity));
    for (std::size_t i = 0; i < means.size(); ++i)
      if (i != 5 && i != 40 && i != 41 && i != 80) CHECK(means[i] == 6);
  }
  for (BlockRank& rank : ranks) std::fill(rank.values[0].begin(), rank.values[0].end(), 6.0F);
  REQUIRE(take_step(world, ranks, take_means) == "");
  for (const BlockRank& rank : ranks) CHECK(rank.means[0] == Floats(90, 6.0F));
  world.group().close_cleanly();
}

TEST_CASE("between replicas of shards sums are in blocks, too; with feedback the means of many steps add up") {
  const bool feedback = GENERATE(true, false);
  const bool shards_alone = GENERATE(false, true);
  ProcedureWorld world({.size = 4, .seed = 11});
  const std::vector<GroupEngine*> all = world.group().groups();
  const auto shards = world.group().split(all, shards_alone ? std::vector{0, 1, 2, 3} : std::vector{0, 0, 1, 1});
  const auto replicas = world.group().split(all, shards_alone ? std::vector{0, 0, 0, 0} : std::vector{0, 1, 0, 1});
  const Wire wire = Wire::int4({.feedback = feedback, .least_elements = 0});
  std::deque<BlockRank> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    ranks.emplace_back(std::vector<Shape>{Shape{40, 3}}, *shards[r], world.agreements(rank), &replicas[r]->options(),
                       FsdpSettings{.reduce_dtype = wire});
  }
  constexpr int kSteps = 200;
  // They differ between the ranks: twice the same would need no rounding.
  const auto large = [](int turn, int rank) { return 7 + 0.5F * static_cast<float>((turn + 3 * rank) % 7); };
  double sum_of_large = 0;
  for (int turn = 0; turn < kSteps; ++turn)
    for (int rank = 0; rank < 4; ++rank) sum_of_large += large(turn, rank) / 4;
  std::vector<double> sum(120);
  for (int turn = 0; turn < kSteps; ++turn) {
    for (int rank = 0; rank < 4; ++rank) {
      BlockRank& own = ranks[static_cast<std::size_t>(rank)];
      // Beside a large element in each block the others round to 0.
      for (std::size_t i = 0; i < 120; ++i) own.values[0][i] = i % 16 == 0 ? large(turn, rank) : 0.05F;
      own.step.begin(own.gradients, own.parameters, take_means);
      const auto r = static_cast<std::size_t>(rank);
      world.start(rank, std::shared_ptr<Procedure>(&own.step, [](Procedure*) {}), {shards[r], replicas[r]});
    }
    REQUIRE(world.run_until_ended());
    REQUIRE(world.failure() == "");
    for (const BlockRank& rank : ranks) REQUIRE(rank.means == ranks[0].means);
    for (std::size_t i = 0; i < 120; ++i) sum[i] += ranks[0].means[0][i];
  }
  // What is missing are residuals: half a step of the blocks of each rank's quarter, of each sum for the replicas, and of the mean.
  const double left = 4 * 0.25 + 2 * 1 + 1;
  if (feedback) {
    CHECK(sum[0] == Approx(sum_of_large).margin(left));
    CHECK(sum[5] == Approx(0.05 * kSteps).margin(left));
  } else {
    CHECK(sum[5] == 0);
  }
}
