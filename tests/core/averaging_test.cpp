#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "simd/kernels.hpp"
#include "tests/core/averages.hpp"
#include "tests/core/operation.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Contains;

namespace {

/// Returns the numbers per element; complex ones have two.
std::size_t parts_of(DType dtype) { return size_of(dtype) / size_of(part_dtype(dtype)); }

void write(TensorView packed, const std::vector<double>& numbers) {
  if (numbers.empty()) return;
  std::vector<float> narrow(numbers.begin(), numbers.end());
  if (part_dtype(packed.dtype()) == DType::f64)
    std::memcpy(packed.data(), numbers.data(), packed.bytes());
  else if (part_dtype(packed.dtype()) == DType::f32)
    std::memcpy(packed.data(), narrow.data(), packed.bytes());
  else
    simd::find("")->cast(DType::f32, packed.dtype())(packed.data(), reinterpret_cast<const std::byte*>(narrow.data()), narrow.size());
}

std::vector<double> read(ConstTensorView view) {
  const Tensor packed = Tensor::copy_of(view);
  const std::byte* elements = packed.view().data();
  const std::size_t count = view.count() * parts_of(view.dtype());
  std::vector<double> wide(count);
  std::vector<float> narrow(count);
  if (count == 0) return wide;
  if (part_dtype(view.dtype()) == DType::f64) {
    std::memcpy(wide.data(), elements, packed.bytes());
    return wide;
  }
  if (part_dtype(view.dtype()) == DType::f32)
    std::memcpy(narrow.data(), elements, packed.bytes());
  else
    simd::find("")->cast(view.dtype(), DType::f32)(reinterpret_cast<std::byte*>(narrow.data()), elements, count);
  return {narrow.begin(), narrow.end()};
}

/// One gradient on every rank. Some have gaps between their elements, which the averaging may not change.
struct Gradient {
  DType dtype;
  std::int64_t rows;
  bool gaps;
  std::vector<std::vector<std::byte>> memory;  // by rank
  std::vector<std::vector<double>> values;     // by rank, before the averaging

  Gradient(SimRandom& random, int ranks)
      : dtype(pick(random, {DType::f16, DType::bf16, DType::f32, DType::f32, DType::f64, DType::complex64, DType::complex128})),
        rows(random.chance(100) ? 0 : static_cast<std::int64_t>(random.below(random.chance(200) ? 700 : 40))),
        gaps(random.chance(300)) {
    const auto count = static_cast<std::size_t>(rows) * 2;
    for (int rank = 0; rank < ranks; ++rank) {
      memory.emplace_back(static_cast<std::size_t>(rows) * 3 * size_of(dtype), std::byte{0x5a});
      std::vector<double> numbers(count * parts_of(dtype));
      for (double& number : numbers) number = (static_cast<double>(random.below(64)) - 31) / 4;
      Tensor packed(dtype, Shape{rows, 2});
      write(packed, numbers);
      copy(packed, view(rank));
      values.push_back(std::move(numbers));
    }
  }
  /// As the mean over no samples is. Its weight is 0, and so is what it adds.
  void fill_with_nan(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const std::size_t element = size_of(dtype), row_bytes = (gaps ? 3 : 2) * element;
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
      std::memset(memory[r].data() + row * row_bytes, 0xff, 2 * element);
    std::fill(values[r].begin(), values[r].end(), 0.0);
  }
  TensorView view(int rank) {
    std::byte* data = memory[static_cast<std::size_t>(rank)].data();
    const Shape shape{rows, 2};
    return gaps ? TensorView(data, dtype, shape, std::array<std::int64_t, 2>{3, 1}) : TensorView(data, dtype, shape);
  }
};

struct Averages {
  Averages(SimRandom& random, int r) : ranks(r), weighted(random.chance(400)) {
    const std::size_t count = random.below(12);
    for (std::size_t i = 0; i < count; ++i) gradients.emplace_back(random, ranks);
    options.all_reduce_size = pick<std::int64_t>(random, {-1, 0, 1, 64, 300, 1000, 32 << 20});
    if (random.chance(300)) options.first_bucket_size = 100;
    if (random.chance(600)) {
      const BlockOptions blocks{.feedback = random.chance(500), .least_elements = pick<std::size_t>(random, {0, 50})};
      options.communication_type = pick(random, {Wire(DType::f16), Wire(DType::bf16), Wire::int8(blocks), Wire::int4(blocks)});
    }
    for (int rank = 0; rank < ranks; ++rank) weights.push_back(static_cast<double>(random.below(5)));
    weights.back() += 1;
    for (int rank = 0; weighted && rank < ranks; ++rank)
      if (weights[static_cast<std::size_t>(rank)] == 0)
        for (Gradient& gradient : gradients) gradient.fill_with_nan(rank);
  }

  Tree tree(int rank) {
    Tree tree;
    for (std::size_t i = 0; i < gradients.size(); ++i) tree.add("g" + std::to_string(i), gradients[i].view(rank));
    return tree;
  }
  AverageOptions options_of(int rank) const {
    AverageOptions own = options;
    if (weighted) own.weight = weights[static_cast<std::size_t>(rank)];
    return own;
  }
  void check();

  int ranks;
  bool weighted;
  AverageOptions options;
  std::vector<double> weights;
  std::vector<Gradient> gradients;
};

void Averages::check() {
  double total = 0;
  for (const double weight : weights) total += weighted ? weight : 1;
  for (Gradient& gradient : gradients) {
    const bool cast = options.communication_type && is_real(gradient.dtype);
    const DType coarsest = cast ? options.communication_type->dtype() : gradient.dtype;
    // Elements are up to 8. A step of int8 is then up to 1/8, of int4 2. Both directions round by half of it, and feedback adds as much.
    const double tolerance = cast && options.communication_type->blocks() == BlockFormat::int8   ? 0.3
                             : cast && options.communication_type->blocks() == BlockFormat::int4 ? 3.1
                             : coarsest == DType::bf16 || gradient.dtype == DType::bf16          ? 0.3
                             : coarsest == DType::f16 || gradient.dtype == DType::f16            ? 0.04
                             : part_dtype(coarsest) == DType::f64                                ? 1e-12
                                                                                                 : 1e-5;
    const std::vector<double> found = read(gradient.view(0));
    for (std::size_t i = 0; i < found.size(); ++i) {
      double expected = 0;
      for (std::size_t rank = 0; rank < gradient.values.size(); ++rank)
        expected += gradient.values[rank][i] * (weighted ? weights[rank] : 1) / total;
      INFO(name_of(gradient.dtype) << " element " << i << ": " << found[i] << ", not " << expected);
      REQUIRE(std::abs(found[i] - expected) <= tolerance);
    }
    for (const auto& memory : gradient.memory) REQUIRE(memory == gradient.memory[0]);
    for (std::size_t row = 0; gradient.gaps && row < static_cast<std::size_t>(gradient.rows); ++row)
      REQUIRE(gradient.memory[0][(3 * row + 2) * size_of(gradient.dtype)] == std::byte{0x5a});
  }
}

GroupSetup averaging_setup(SimRandom& random, std::uint64_t seed) {
  GroupSetup setup;
  setup.size = static_cast<int>(1 + random.below(5));
  setup.seed = seed;
  if (random.chance(500)) setup.paths = rough_paths();
  setup.world.limits = {random.below(2) * 200, 1000 + random.below(2) * 20'000};
  return setup;
}

}  // namespace

TEST_CASE("trees are averaged from completions: dtypes, gaps, buckets, pieces, types of communication, weights") {
  const auto seed = GENERATE(from_range(seeds(150)));
  CAPTURE(seed);
  SimRandom random(seed * 11 + 5);
  ProcedureWorld world(averaging_setup(random, seed));
  for (int step = 0; step < 3; ++step) {
    Averages averages(random, world.size());
    REQUIRE(world.run([&](int rank) { return average(world, rank, averages.tree(rank), averages.options_of(rank)); }));
    REQUIRE(world.failure() == "");
    if (world.size() > 1) averages.check();
  }
  if (world.size() > 1) world.group().close_cleanly();
}

TEST_CASE("a tree that was agreed on is not compared again; trees that differ are named on every rank, and the group lives on") {
  ProcedureWorld world({.size = 3, .seed = 1});
  std::vector<float> six(6, 1.f);
  const auto run = [&](const std::function<Tree(int)>& tree) {
    REQUIRE(world.run(
        [&](int rank) { return std::make_shared<TreeAgreement>(world.engine(rank), world.agreements(rank), "here", tree(rank)); }));
  };
  const auto mismatch = [&](const std::function<Tree(int)>& tree, const std::string& wanted) {
    run(tree);
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(world.status(rank)->code() == Errc::mismatch);
      CHECK(world.status(rank)->rank() == 2);
      CHECK_THAT(world.status(rank)->text(), Contains("here: the ranks' trees differ: ") && Contains(wanted));
    }
  };
  const Tree same{{"a\nb", six}, {"c", {six.data(), DType::f32, Shape{2, 3}}}, {"s", {six.data(), DType::bf16, Shape{}}}};
  run([&](int) { return same; });
  CHECK(world.failure() == "");
  TreeAgreement again(world.engine(0), world.agreements(0), "here", same);
  CHECK(asked(again) == std::vector<std::string>{"done"});
  mismatch([&](int rank) { return Tree{{"w", {six.data(), DType::f32, rank == 2 ? Shape{3, 2} : Shape{2, 3}}}}; },
           "tensor 0 is 'w' f32 (2, 3) in rank 0's but 'w' f32 (3, 2) in rank 2's");
  mismatch([&](int rank) { return rank == 2 ? Tree() : Tree{{"a\nb.c", six}}; }, "tensor 0, 'a?b.c' f32 (6,), is only in rank 0's");
  mismatch([&](int rank) { return Tree{{"w", {six.data(), rank == 2 ? DType::f64 : DType::f32, Shape{}}}}; }, "'w' f64 () in rank 2's");
  run([&](int) { return same; });
  CHECK(world.failure() == "");
  world.group().close_cleanly();
}

TEST_CASE("in part of a world the culprit is named in the world's numbers") {
  ProcedureWorld world({.size = 4, .seed = 2});
  const auto parts = world.group().split(world.group().groups(), {0, 1, 1, 1});
  std::vector<float> values(2);
  for (int rank = 1; rank < 4; ++rank) {
    const Tree tree{{rank == 3 ? "x" : "y", values}};
    auto& part = *parts[static_cast<std::size_t>(rank)];
    world.start(rank, std::make_shared<TreeAverage>(part, world.agreements(rank), tree, AverageOptions{}), {&part}, 7);
  }
  world.start(0, std::make_shared<TreeAverage>(*parts[0], world.agreements(0), Tree{{"z", values}}, AverageOptions{}), {parts[0]});
  REQUIRE(world.run_until_ended());
  CHECK(world.status(0)->ok());
  for (int rank = 1; rank < 4; ++rank) {
    CHECK(world.status(rank)->rank() == 3);
    CHECK_THAT(world.status(rank)->text(), Contains("'y' f32 (2,) in rank 0's but 'x' f32 (2,) in rank 2's"));
  }
}

TEST_CASE("what is wrong with gradients, options or stream ends the procedure before anything moves") {
  ProcedureWorld world({.size = 2, .seed = 3});
  std::vector<float> values(4);
  std::vector<std::int32_t> whole(4);
  const auto refused = [&](const Tree& tree, const AverageOptions& options, const std::string& wanted) {
    REQUIRE(world.run([&](int rank) { return average(world, rank, tree, options); }));
    for (int rank = 0; rank < 2; ++rank) {
      CHECK(world.status(rank)->code() == Errc::invalid_argument);
      CHECK_THAT(world.status(rank)->text(), Contains(wanted));
    }
  };
  refused(Tree{{"a", values}, {"b", whole}}, {}, "dtype i32");
  refused(Tree{{"a", {nullptr, DType::f32, Shape{3}}}}, {}, "null but has 3");
  refused(Tree{{"a", values}}, {.communication_type = DType::f64}, "communication_type is f64");
  refused(Tree{{"a", values}}, {.weight = -0.5}, "weight is -0.5");
  refused(Tree{{"a", values}}, {.weight = 0.0}, "at least one must be positive");
  refused(Tree{{"a", values}}, {.weight = 1e308}, "too large for a double");
  for (int rank = 0; rank < 2; ++rank) world.start(rank, average(world, rank, Tree{{"a", values}}), {&world.engine(rank)}, 2000);
  REQUIRE(world.run_until_ended());
  CHECK_THAT(world.failure(), Contains("stream 2000 does not exist"));
  world.group().close_cleanly();
}

TEST_CASE("when a rank is lost every procedure ends once, with its number") {
  const auto seed = GENERATE(from_range(seeds(20)));
  CAPTURE(seed);
  SimRandom random(seed);
  ProcedureWorld world({.size = 3, .seed = seed});
  std::vector<std::vector<float>> values(60, std::vector<float>(5000, 1.f));
  std::vector<Tree> trees(3);
  for (auto& tree : trees)
    for (std::size_t i = 0; i < 20; ++i) tree.add("g" + std::to_string(i), values[i + 20 * static_cast<std::size_t>(&tree - trees.data())]);
  for (int rank = 0; rank < 3; ++rank)
    world.start(rank, average(world, rank, trees[static_cast<std::size_t>(rank)], {.all_reduce_size = 50'000}), {&world.engine(rank)});
  world.group()
      .sim()
      .stop(world.group().node(1), StopKind::resets_links)
      .in(Duration::microseconds(static_cast<std::int64_t>(random.below(3000))));
  REQUIRE(world.group().sim().run_until([&] { return world.status(0) && world.status(2); }, {.time = Duration::seconds(3000)}) ==
          RunEnd::done);
  for (const int rank : {0, 2}) {
    if (world.status(rank)->ok()) continue;
    CHECK(world.status(rank)->code() == Errc::peer_lost);
    CHECK(world.status(rank)->rank() == 1);
  }
}

TEST_CASE("buckets start while gradients are still added, and few are under way where all are there") {
  WorldOptions group;
  group.size = 2;
  group.kernels = simd::find("");
  std::vector<std::vector<float>> tensors(12, std::vector<float>(100, 1.f));
  using Asked = std::vector<std::string>;
  SECTION("streaming") {
    Averager averager(group, {.all_reduce_size = 800, .first_bucket_size = 400});
    const auto add = [&](std::size_t i) {
      REQUIRE(averager.add(tensors[i]).ok());
      return asked(averager);
    };
    CHECK(add(0) == Asked{"start", "done"});
    CHECK(add(1) == Asked{"done"});
    CHECK(add(2) == Asked{"start", "done"});
    CHECK(add(3) == Asked{"done"});
    CHECK_FALSE(averager.set_weight(2.0).ok());
    averager.close();
    CHECK(asked(averager) == Asked{"start", "wait", "wait", "wait", "done"});
    CHECK(averager.collectives() == 3);
    REQUIRE(averager.set_weight(2.0).ok());
    CHECK(add(0) == Asked{"run", "start", "done"});
    averager.close();
    CHECK(asked(averager) == Asked{"wait", "done"});
    CHECK(averager.collectives() == 2);
  }
  SECTION("all at once") {
    const std::vector<TensorView> views(tensors.begin(), tensors.end());
    Averager averager(group, {.all_reduce_size = 800}, 3200);
    REQUIRE(averager.add_all(views).ok());
    CHECK(asked(averager) ==
          Asked{"start", "start", "start", "start", "wait", "start", "wait", "start", "wait", "wait", "wait", "wait", "done"});
  }
  SECTION("pieces of one tensor") {
    std::vector<float> large(1000, 1.f);
    const std::vector<TensorView> views{large};
    Averager averager(group, {.all_reduce_size = 400, .communication_type = DType::bf16}, 1600);
    REQUIRE(averager.add_all(views).ok());
    CHECK(asked(averager) == Asked{"start", "start", "start", "start", "wait", "start", "wait", "wait", "wait", "wait", "done"});
  }
}

TEST_CASE("a procedure's collectives have the timeout that it was given") {
  ProcedureWorld world({.size = 2, .seed = 4});
  std::vector<float> values(4);
  std::optional<Status> ended;
  const Instant began = world.group().node(0).loop().now();
  run_procedure(
      world.group().node(0).loop(), average(world, 0, Tree{{"a", values}}), {&world.engine(0)}, 0,
      [&](const Status& status) { ended = status; }, Duration::seconds(3));
  REQUIRE(world.group().sim().run_until([&] { return ended.has_value(); }, {.time = Duration::seconds(100)}) == RunEnd::done);
  CHECK(ended->code() == Errc::timed_out);
  CHECK(world.group().node(0).loop().now() - began < Duration::seconds(6));
}
