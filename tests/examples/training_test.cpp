#include <batches.hpp>
#include <catch2/catch.hpp>
#include <flat_parameters.hpp>
#include <model.hpp>
#include <training.hpp>

using namespace train_text;

TEST_CASE("every parameter is in the tree once, by name") {
  constexpr ModelShape kShape{.layers = 2, .width = 8, .heads = 2, .context = 6};
  Transformer<float> model(kShape, 1);
  FlatParameters<float> memory(model.modules());
  const ringlet::Tree tree = tree_of(model.modules(), memory.values());
  CHECK(tree.count() == model.parameter_count());
  CHECK(tree.children() == std::vector<std::string>{"embedding", "blocks", "head"});
  CHECK(tree.at("blocks.1.attention.qkv.weight").shape() == ringlet::Shape{8, 3 * 8});
  CHECK(tree.at("embedding.bytes").data() == reinterpret_cast<std::byte*>(memory.values().data()));
}

TEST_CASE("weights decay and nothing else does") {
  std::vector<float> parameters(2, 1.0F), gradients(2, 0.0F);
  Module<float> module("head", 1, 0);
  module.add("output.weight", {1}, 0, 0);
  module.add("output.bias", {1}, 0, 0);
  const auto optimizer = make_optimizer(0.5);
  optimizer->apply_gradients(tree_of(module, gradients), tree_of(module, parameters));
  CHECK(parameters[0] == Approx(1 - 0.5 * 0.1));
  CHECK(parameters[1] == 1.0F);
}

TEST_CASE("the shares of the mean add up to one mean") {
  const int batch = GENERATE(4, 7, 10);
  const int ranks = GENERATE(1, 2, 3, 4);
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += share_of_mean(slice_of(batch, rank, ranks).count, batch, ranks);
  CHECK(sum == Approx(ranks));
  if (batch % ranks == 0) CHECK(share_of_mean(batch / ranks, batch, ranks) == 1);
}

TEST_CASE("the learning rate rises to its peak and falls to its floor") {
  const ringlet::Schedule rate = learning_rate_schedule(200, 1.0);
  CHECK(rate(0) == Approx(0.1));
  CHECK(rate(9) == Approx(1.0));
  CHECK(rate(10) == Approx(1.0));
  CHECK(rate(105) == Approx(0.525));
  CHECK(rate(200) == Approx(0.05));
  CHECK(learning_rate_schedule(1, 1.0)(0) == Approx(1.0));
}
