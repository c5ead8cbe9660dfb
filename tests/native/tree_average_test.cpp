#include <catch2/catch.hpp>

#include "tests/native/expect.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using test::expect;
using test::failure_of;

TEST_CASE("a tree's gradients become their means") {
  test::run_ranks(3, [](Group& world) {
    std::vector<float> weight(6, static_cast<float>(world.rank()));
    std::vector<double> scale{static_cast<double>(world.rank() * 3)};
    average_gradients(world,
                      Tree{{"layer.weight", {weight.data(), DType::f32, Shape{2, 3}}}, {"scale", {scale.data(), DType::f64, Shape{}}}});
    expect(weight == std::vector<float>(6, 1.f), "weight");
    expect(scale[0] == 3.0, "scale");
  });
}

TEST_CASE("gradients with gaps are averaged and nothing between them is touched") {
  test::run_ranks(2, [](Group& world) {
    std::vector<float> memory(12, -1.f);
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t column = 0; column < 2; ++column) memory[3 * row + column] = static_cast<float>(world.rank() * 2);
    const TensorView gradient(memory.data(), DType::f32, Shape{4, 2}, std::array<std::int64_t, 2>{3, 1});
    average_gradients(world, Tree{{"w", gradient}}, {.all_reduce_size = 16});
    for (std::size_t i = 0; i < memory.size(); ++i) expect(memory[i] == (i % 3 == 2 ? -1.f : 1.f), "element " + std::to_string(i));
  });
}

TEST_CASE("trees that differ between ranks are found and named on every rank, and the group lives on") {
  test::run_ranks(3, [](Group& world) {
    std::vector<float> six(6, 1.f);
    const bool differs = world.rank() == 2;
    const auto check = [&](const Tree& tree, const std::string& wanted) {
      const std::string text = failure_of<MismatchError>([&] { average_gradients(world, tree); });
      expect(text.find(wanted) != std::string::npos, text);
    };
    check(Tree{{"layer.weight", {six.data(), DType::f32, differs ? Shape{3, 2} : Shape{2, 3}}}},
          "tensor 0 is 'layer.weight' f32 (2, 3) in rank 0's but 'layer.weight' f32 (3, 2) in rank 2's");
    check(Tree{{differs ? "bias" : "weight", six}}, "'weight' f32 (6,) in rank 0's but 'bias' f32 (6,) in rank 2's");
    check(Tree{{"weight", {six.data(), differs ? DType::bf16 : DType::f32, Shape{2}}}}, "bf16 (2,) in rank 2's");
    check(differs ? Tree{{"a", six}} : Tree{{"a", six}, {"b", six}}, "'b' f32 (6,), is only in rank 0's");
    world.all_sum(six);
    expect(six[0] == 3.f, "the group lives on");
  });
}
