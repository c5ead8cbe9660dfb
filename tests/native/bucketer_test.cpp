#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "native/agreement.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;

namespace {

/// A model's gradients as one rank has them in one step.
class Gradients {
 public:
  explicit Gradients(std::size_t tensors) : values_(tensors) {
    for (std::size_t i = 0; i < tensors; ++i) {
      values_[i].resize(1 + 37 * i);
      tree_.add("layers." + std::to_string(i) + ".weight", values_[i]);
    }
  }
  void fill(int rank, int step) {
    for (std::size_t i = 0; i < values_.size(); ++i) std::fill(values_[i].begin(), values_[i].end(), value(rank, step, i));
  }
  static float value(int rank, int step, std::size_t index) {
    return static_cast<float>(rank * 3 + step) + static_cast<float>(index) * 0.5f;
  }
  const Tree& tree() const { return tree_; }
  const std::vector<float>& operator[](std::size_t index) const { return values_[index]; }
  std::size_t size() const { return values_.size(); }

 private:
  std::vector<std::vector<float>> values_;
  Tree tree_;
};

float mean(int ranks, int step, std::size_t index) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Gradients::value(rank, step, index);
  return sum / static_cast<float>(ranks);
}

}  // namespace

TEST_CASE("gradients may be ready in any order, another one on every rank and in every step") {
  const int ranks = GENERATE(1, 2, 3);
  const auto seed = GENERATE(range(0, 5));
  test::run_ranks(ranks, [&](Group& world) {
    std::mt19937 random(static_cast<unsigned>(seed * 100 + world.rank()));
    Gradients gradients(12);
    GradientBucketer bucketer(world, gradients.tree(), {.average = {.all_reduce_size = 2000, .first_bucket_size = 500}});
    std::vector<std::size_t> order(gradients.size());
    std::iota(order.begin(), order.end(), 0);
    for (int step = 0; step < 4; ++step) {
      gradients.fill(world.rank(), step);
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t index : order) bucketer.ready(gradients.tree()[index].name);
      bucketer.finish();
      expect(bucketer.averaged().size() == gradients.size(), "all were reported");
      for (std::size_t i = 0; i < gradients.size(); ++i)
        for (const float value : gradients[i]) expect(value == mean(ranks, step, i), [&] { return "step " + std::to_string(step); });
    }
  });
}

TEST_CASE("buckets fill in reverse order first, then in the observed order; the first one is small") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::vector<float>> values(8, std::vector<float>(100));
    Tree tree;
    for (std::size_t i = 0; i < values.size(); ++i) tree.add("g" + std::to_string(i), values[i]);
    GradientBucketer bucketer(world, tree, {.average = {.all_reduce_size = 1200, .first_bucket_size = 400}});
    // The 8 tensors of 400 bytes fill a bucket of 400 bytes, two of 1200 bytes, and a last one.
    for (std::size_t i = values.size(); i-- > 1;) bucketer.ready(i);
    expect(bucketer.collectives() == 3, "three buckets have started before the last gradient is ready");
    bucketer.ready(0);
    bucketer.finish();
    expect(bucketer.collectives() == 4, "the first step");
    // Buckets start in the order of the backward pass, from the last tensor to the first, so none can start without the last one.
    for (std::size_t i = 0; i + 1 < values.size(); ++i) bucketer.ready(i);
    expect(bucketer.collectives() == 0 || bucketer.collectives() == 4, "g7 comes first and is missing");
    bucketer.ready(7);
    expect(bucketer.collectives() == 3, "all that stood behind it has started");
    bucketer.finish();
  });
}

TEST_CASE("the order of rank 0's first step is taken over by all") {
  test::run_ranks(2, [](Group& world) {
    std::vector<std::vector<float>> values(4, std::vector<float>(100));
    Tree tree;
    for (std::size_t i = 0; i < values.size(); ++i) tree.add("g" + std::to_string(i), values[i]);
    GradientBucketer bucketer(world, tree, {.average = {.all_reduce_size = 400}});
    const std::vector<std::size_t> forward{0, 1, 2, 3}, backward{3, 2, 1, 0};
    for (const std::size_t i : world.rank() == 0 ? forward : backward) bucketer.ready(i);
    bucketer.finish();
    bucketer.ready(0);
    expect(bucketer.collectives() == 1, "rank 0 saw g0 first, so it starts first everywhere");
    for (const std::size_t i : {1, 2, 3}) bucketer.ready(i);
    bucketer.finish();
  });
}

TEST_CASE("an order of rank 0 that is none ends in an error, whatever it names") {
  const std::vector<std::uint32_t> order =
      GENERATE(std::vector<std::uint32_t>{0, 2}, std::vector<std::uint32_t>{1, 0xffffffff}, std::vector<std::uint32_t>{1, 1});
  std::vector<float> values[2][2]{{std::vector<float>(3), std::vector<float>(5)}, {std::vector<float>(3), std::vector<float>(5)}};
  const auto tree_of = [&](const Group& world) {
    auto& [first, second] = values[world.rank()];
    return Tree{{"first", first}, {"second", second}};
  };
  test::expect_blame(
      "an order of 2 gradients",
      [&](Group& world) {
        GradientBucketer bucketer(world, tree_of(world), {.allow_missing = false});
        for (const std::size_t i : {0, 1}) bucketer.ready(i);
        bucketer.finish();
      },
      [&](Group& world) {
        const Tree tree = tree_of(world);
        native::require_same_tree(world, "GradientBucketer", tree, {});
        GradientAverager averager(world);
        for (const std::size_t i : {1, 0}) averager.add(tree[i].values);
        averager.finish();
        std::vector<std::uint32_t> told = order;
        world.broadcast(told, 0);
      },
      0);
}

TEST_CASE("gradients that some or all ranks do not have in a step") {
  test::run_ranks(3, [](Group& world) {
    Gradients gradients(4);
    GradientBucketer bucketer(world, gradients.tree());
    for (int step = 0; step < 3; ++step) {
      gradients.fill(world.rank(), step);
      bucketer.ready(0);
      if (world.rank() == 1) bucketer.ready(2);
      bucketer.finish();
      expect(bucketer.averaged().size() == 2 && bucketer.averaged()[0].name == "layers.0.weight", "g1 and g3 have none");
      expect(gradients[0][0] == mean(3, step, 0), "all have it");
      expect(gradients[2][0] == Gradients::value(1, step, 2) / 3, "one has it");
      expect(gradients[3][0] == 0, "none has it");
    }
  });
}

TEST_CASE("weights change from step to step") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> values(10);
    GradientBucketer bucketer(world, Tree{{"w", values}});
    for (int step = 1; step < 4; ++step) {
      std::fill(values.begin(), values.end(), static_cast<float>(world.rank()));
      bucketer.set_weight(world.rank() == 0 ? 1.0 : step);
      bucketer.ready("w");
      if (step == 1) failure_of<InvalidArgument>([&] { bucketer.set_weight(2.0); });
      bucketer.finish();
      expect(std::abs(values[0] - static_cast<float>(step) / static_cast<float>(1 + step)) < 1e-6f, "step " + std::to_string(step));
    }
  });
}

TEST_CASE("a bucketer refuses what is not in its tree, what comes twice, and what is missing") {
  test::run_ranks(2, [](Group& world) {
    Gradients gradients(2);
    GradientBucketer bucketer(world, gradients.tree(), {.allow_missing = false});
    bucketer.ready(1);
    expect(failure_of<InvalidArgument>([&] { bucketer.ready(1); }).find("layers.1.weight") != std::string::npos, "twice");
    expect(failure_of<InvalidArgument>([&] { bucketer.ready("layers.9.weight"); }).find("layers.9.weight") != std::string::npos, "unknown");
    expect(failure_of<InvalidArgument>([&] { bucketer.ready(2); }).find("there is no gradient 2") != std::string::npos, "index");
    expect(failure_of<InvalidArgument>([&] { bucketer.finish(); }).find("'layers.0.weight'") != std::string::npos, "missing");
    bucketer.ready(0);
    bucketer.finish();
    const std::string text = failure_of<MismatchError>(
        [&] { GradientBucketer other(world, Tree{{world.rank() == 0 ? "a" : "b", gradients.tree()[0].values}}); });
    expect(text.find("'a'") != std::string::npos && text.find("'b'") != std::string::npos, text);
  });
}

TEST_CASE("error feedback follows the gradients when their order changes") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> one(64), other(64);
    const Tree tree{{"a", one}, {"b", other}};
    GradientBucketer bucketer(world, tree,
                              {.average = {.communication_type = Wire::int8({.feedback = true, .least_elements = 0}), .weight = 1.0}});
    double sum_of_one = 0, sum_of_other = 0;
    constexpr int kSteps = 40;
    for (int step = 0; step < kSteps; ++step) {
      std::fill(one.begin(), one.end(), 0.1F);
      std::fill(other.begin(), other.end(), -0.2F);
      one[0] = other[0] = 100;
      // From the second step on the order is that of rank 0, which is not the one of the first step.
      bucketer.ready("a");
      bucketer.ready("b");
      bucketer.finish();
      sum_of_one += one[5];
      sum_of_other += other[5];
    }
    expect(sum_of_one > 0 && sum_of_other < 0, "residuals of one tensor are not added to another one");
    expect(std::abs(sum_of_one - 0.1 * kSteps) < 2 && std::abs(sum_of_other + 0.2 * kSteps) < 2, "the sums of many steps");
  });
}
