#include <catch2/catch.hpp>
#include <ringlet/error.hpp>
#include <ringlet/tree.hpp>

using namespace ringlet;
using Catch::Matchers::Contains;

namespace {

struct Model {
  std::vector<float> embedding = std::vector<float>(6), weight = std::vector<float>(4), bias = std::vector<float>(2);

  Tree tree() { return {{"embedding", embedding}, {"layers.0.weight", {weight.data(), DType::f32, Shape{2, 2}}}, {"layers.0.bias", bias}}; }
};

}  // namespace

TEST_CASE("a tree keeps order and views the caller's memory") {
  Model model;
  const Tree tree = model.tree();
  REQUIRE(tree.size() == 3);
  CHECK(tree[1].name == "layers.0.weight");
  CHECK(tree.at("layers.0.bias").data() == reinterpret_cast<std::byte*>(model.bias.data()));
  CHECK(tree.index_of("layers.0.bias") == 2);
  CHECK(tree.count() == 12);
  CHECK(tree.bytes() == 48);
  CHECK(tree.find("layers.0") == nullptr);
  CHECK_THROWS_WITH(tree.at("layers.1.weight"), Contains("layers.1.weight"));
}

TEST_CASE("trees nest, flatten and unflatten") {
  Model model;
  Tree outer;
  outer.add("model", model.tree());
  CHECK(outer[1].name == "model.layers.0.weight");
  CHECK(outer.below("model.layers.0").children() == std::vector<std::string>{"weight", "bias"});
  CHECK(outer.below("model").children() == std::vector<std::string>{"embedding", "layers"});
  CHECK(outer.below("nothing").empty());
  const Tree again(outer.leaves());
  CHECK(difference(outer, "a", again, "b").empty());
}

TEST_CASE("map keeps names and may change tensors") {
  Model model;
  const Tree flat = model.tree().map(
      [](const std::string&, const TensorView& values) { return TensorView(values.data(), values.dtype(), values.count()); });
  CHECK(flat.at("layers.0.weight").shape() == Shape{4});
}

TEST_CASE("names that cannot stand in a tree are refused") {
  Model model;
  Tree tree = model.tree();
  CHECK_THROWS_WITH(tree.add("", model.bias), Contains("empty"));
  CHECK_THROWS_WITH(tree.add("a..b", model.bias), Contains("a..b"));
  CHECK_THROWS_WITH(tree.add("embedding", model.bias), Contains("already"));
  CHECK_THROWS_WITH(tree.add("layers.0", model.bias), Contains("level above"));
  CHECK_THROWS_WITH(tree.add("embedding.rows", model.bias), Contains("'embedding'"));
  CHECK(tree.size() == 3);
}

TEST_CASE("the first difference of two trees is named") {
  Model model;
  const Tree tree = model.tree();
  CHECK(difference(tree, "here", tree, "there").empty());
  CHECK_THAT(difference(tree, "here", Tree{{"embedding", model.embedding}, {"weight", model.weight}}, "there"),
             Contains("tensor 1 is 'layers.0.weight' f32 (2, 2) in here but 'weight' f32 (4,) in there"));
  CHECK_THAT(difference(Tree{{"embedding", model.embedding}}, "here", tree, "there"),
             Contains("tensor 1, 'layers.0.weight' f32 (2, 2), is only in there"));
}
