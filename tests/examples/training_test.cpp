#include <catch2/catch.hpp>
#include <model.hpp>
#include <training.hpp>

using namespace train_text;

TEST_CASE("every parameter is in the tree once, by name") {
  constexpr ModelShape kShape{.layers = 2, .width = 8, .heads = 2, .context = 6};
  Transformer<float> model(kShape, 1);
  const ringlet::Tree tree = tree_of(model.parameter_ranges(), model.parameters());
  CHECK(tree.count() == model.parameters().size());
  CHECK(tree.children() == std::vector<std::string>{"embedding", "blocks", "norm", "head"});
  CHECK(tree.at("blocks.1.attention.qkv.weight").count() == 8 * 3 * 8);
  CHECK(tree.at("embedding.bytes").data() == reinterpret_cast<std::byte*>(model.parameters().data()));
}

TEST_CASE("weights decay and nothing else does") {
  std::vector<float> parameters(2, 1.0F), gradients(2, 0.0F);
  const std::vector<ParameterRange> ranges{{"head.weight", 0, 1}, {"head.bias", 1, 1}};
  ringlet::MultiOptimizer optimizer = make_optimizer(0.5);
  optimizer.apply_gradients(tree_of(ranges, gradients), tree_of(ranges, parameters));
  CHECK(parameters[0] == Approx(1 - 0.5 * 0.1));
  CHECK(parameters[1] == 1.0F);
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
