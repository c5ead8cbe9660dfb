// Tests of names, state, steps, learning rates and errors, which all optimizers share.
#include <catch2/catch.hpp>
#include <limits>
#include <ringlet/error.hpp>

#include "core/optimizers/check_optimizer.hpp"
#include "tests/core/optimizers/rules.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

static_assert(OptimizerLike<Optimizer>);
static_assert(OptimizerLike<Adam>);
static_assert(OptimizerLike<MultiOptimizer>);
static_assert(!OptimizerLike<Tree>);

namespace {

struct Model {
  std::vector<float> weight{1, 2, 3, 4}, bias{5, 6};
  std::vector<float> weight_gradient{1, 1, 1, 1}, bias_gradient{2, 2};

  Tree parameters() { return {{"layer.weight", {weight.data(), DType::f32, Shape{2, 2}}}, {"layer.bias", bias}}; }
  Tree gradients() { return {{"layer.weight", {weight_gradient.data(), DType::f32, Shape{2, 2}}}, {"layer.bias", bias_gradient}}; }
};

std::vector<std::string> names_of(const Tree& tree) {
  std::vector<std::string> names;
  for (const Leaf& leaf : tree) names.push_back(leaf.name);
  return names;
}

}  // namespace

TEST_CASE("state is made for names as they come") {
  Model model;
  Adam optimizer(0.1);
  CHECK(optimizer.state().empty());
  CHECK(optimizer.state_bytes() == 0);
  optimizer.apply_gradients({{"layer.bias", model.bias_gradient}}, model.parameters());
  CHECK(names_of(optimizer.state()) == std::vector<std::string>{"layer.bias.m", "layer.bias.v"});
  CHECK(model.weight == std::vector<float>{1, 2, 3, 4});
  CHECK(model.bias != std::vector<float>{5, 6});
  const TensorView moment = optimizer.state().at("layer.bias.m");
  optimizer.apply_gradients(model.gradients(), model.parameters());
  CHECK(names_of(optimizer.state()) == std::vector<std::string>{"layer.bias.m", "layer.bias.v", "layer.weight.m", "layer.weight.v"});
  CHECK(optimizer.state().at("layer.bias.m").data() == moment.data());
  CHECK(optimizer.state().at("layer.weight.v").shape() == Shape{2, 2});
  CHECK(optimizer.state_bytes() == 2 * (4 + 2) * sizeof(float));
  CHECK(optimizer.step() == 2);
}

TEST_CASE("SGD without momentum has no state") {
  Model model;
  SGD optimizer(0.5);
  optimizer.init(model.parameters());
  optimizer.apply_gradients(model.gradients(), model.parameters());
  CHECK(optimizer.state().empty());
  CHECK(optimizer.state_bytes() == 0);
  CHECK(model.weight == std::vector<float>{0.5, 1.5, 2.5, 3.5});
  CHECK(model.bias == std::vector<float>{4, 5});
}

TEST_CASE("an optimizer with restored state goes on as the first would have") {
  for (const Rule& rule : all_rules()) {
    INFO(rule.name);
    Model first, second;
    const auto whole = rule.make({}), resumed = rule.make({});
    for (int step = 0; step < 3; ++step) whole->apply_gradients(first.gradients(), first.parameters());
    second.weight = first.weight;
    second.bias = first.bias;
    resumed->init(second.parameters());
    for (const Leaf& leaf : whole->state()) copy(leaf.values, resumed->state().at(leaf.name));
    resumed->set_step(whole->step());
    for (int step = 0; step < 3; ++step) {
      whole->apply_gradients(first.gradients(), first.parameters());
      resumed->apply_gradients(second.gradients(), second.parameters());
    }
    CHECK(first.weight == second.weight);
    CHECK(first.bias == second.bias);
    CHECK(resumed->step() == 6);
  }
}

TEST_CASE("a slice of a parameter is updated as it is within the whole") {
  for (const Rule& rule : all_rules()) {
    INFO(rule.name);
    std::vector<float> whole = random_values_as<float>(1'001, 1, 1.0), gradients = random_values_as<float>(1'001, 2, 1.0);
    std::vector<float> slice(whole.begin() + 300, whole.begin() + 777), slice_gradients(gradients.begin() + 300, gradients.begin() + 777);
    const auto on_whole = rule.make({}), on_slice = rule.make({});
    for (int step = 0; step < 3; ++step) {
      on_whole->apply_gradients({{"w", gradients}}, {{"w", whole}});
      on_slice->apply_gradients({{"w", slice_gradients}}, {{"w", slice}});
    }
    CHECK(std::equal(slice.begin(), slice.end(), whole.begin() + 300));
  }
}

TEST_CASE("empty trees and tensors count as steps") {
  std::vector<float> none;
  Adam optimizer(0.1);
  optimizer.apply_gradients({}, {});
  optimizer.apply_gradients({{"w", none}}, {{"w", none}});
  CHECK(optimizer.step() == 2);
  CHECK(optimizer.state_bytes() == 0);
}

TEST_CASE("wrong gradients are refused before anything changes") {
  Model model;
  const std::vector<float> weight = model.weight;
  Adam optimizer(0.1);
  std::vector<float> other(3);
  std::vector<std::int32_t> integers(2);
  const auto with = [&](std::string name, TensorView values) { return model.gradients().add(std::move(name), values); };
  CHECK_THROWS_WITH(optimizer.apply_gradients(with("layer.extra", other), model.parameters()), Contains("'layer.extra'"));
  CHECK_THROWS_WITH(optimizer.apply_gradients({{"layer.bias", other}}, model.parameters()),
                    Contains("'layer.bias'") && Contains("f32 (3,)") && Contains("f32 (2,)"));
  CHECK_THROWS_WITH(optimizer.apply_gradients({{"layer.bias", integers}}, model.parameters()), Contains("i32"));
  CHECK_THROWS_WITH(optimizer.apply_gradients({{"layer.bias", model.bias_gradient}}, {{"layer.bias", integers}}), Contains("i32"));
  CHECK_THROWS_AS(optimizer.init({{"layer.bias", integers}}), InvalidArgument);
  CHECK(model.weight == weight);
  CHECK(optimizer.step() == 0);
  CHECK(optimizer.state().empty());
  optimizer.apply_gradients(model.gradients(), model.parameters());
  CHECK_THROWS_WITH(optimizer.apply_gradients({{"layer.bias", other}}, {{"layer.bias", other}}),
                    Contains("'layer.bias'") && Contains("(3,)") && Contains("(2,)"));
}

TEST_CASE("a schedule is asked with the steps taken before") {
  Model model;
  std::vector<std::uint64_t> asked;
  SGD optimizer([&](std::uint64_t step) {
    asked.push_back(step);
    return step < 2 ? 1.0 : 0.25;
  });
  CHECK(optimizer.learning_rate() == 1.0);
  asked.clear();
  for (int step = 0; step < 3; ++step) optimizer.apply_gradients(model.gradients(), model.parameters());
  CHECK(asked == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(optimizer.learning_rate() == 0.25);
  CHECK(model.weight[0] == 1 - 1 - 1 - 0.25F);
  optimizer.set_step(0);
  CHECK(optimizer.learning_rate() == 1.0);
  optimizer.set_learning_rate(0.5);
  CHECK(optimizer.learning_rate() == 0.5);
}

TEST_CASE("wrong learning rates are refused") {
  Model model;
  CHECK_THROWS_WITH(SGD(-0.1), Contains("SGD") && Contains("-0.1"));
  CHECK_THROWS_AS(Adam(std::numeric_limits<double>::quiet_NaN()), InvalidArgument);
  CHECK_THROWS_AS(Adam(Schedule()), InvalidArgument);
  SGD optimizer([](std::uint64_t step) { return step == 1 ? -2.0 : 1.0; });
  optimizer.apply_gradients(model.gradients(), model.parameters());
  const std::vector<float> weight = model.weight;
  CHECK_THROWS_WITH(optimizer.apply_gradients(model.gradients(), model.parameters()), Contains("step 1") && Contains("-2"));
  CHECK(model.weight == weight);
  CHECK(optimizer.step() == 1);
  CHECK_THROWS_AS(optimizer.set_learning_rate(-1), InvalidArgument);
  CHECK(optimizer.learning_rate() == 1.0);
}

TEST_CASE("wrong options are refused with name and value") {
  CHECK_THROWS_WITH(SGD(0.1, {.momentum = -1}), Contains("SGD") && Contains("momentum") && Contains("-1"));
  CHECK_THROWS_WITH(SGD(0.1, {.weight_decay = -0.5}), Contains("weight_decay") && Contains("-0.5"));
  CHECK_THROWS_WITH(SGD(0.1, {.dampening = 2}), Contains("dampening") && Contains("2"));
  CHECK_THROWS_WITH(SGD(0.1, {.nesterov = true}), Contains("momentum") && Contains("nesterov"));
  CHECK_THROWS_WITH(SGD(0.1, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), Contains("dampening") && Contains("nesterov"));
  CHECK_THROWS_WITH(RMSprop(0.1, {.alpha = -0.1}), Contains("alpha"));
  CHECK_THROWS_WITH(RMSprop(0.1, {.eps = -1e-8}), Contains("RMSprop") && Contains("eps") && Contains("-1e-08"));
  CHECK_THROWS_WITH(Adagrad(0.1, {.eps = 0}), Contains("Adagrad") && Contains("eps"));
  CHECK_THROWS_WITH(AdaDelta(0.1, {.rho = 1}), Contains("rho"));
  CHECK_THROWS_WITH(AdaDelta(0.1, {.eps = -1}), Contains("eps"));
  CHECK_THROWS_WITH(Adam(0.1, {.betas = {1.0, 0.9}}), Contains("betas[0]") && Contains("1"));
  CHECK_THROWS_WITH(Adam(0.1, {.betas = {0.9, -0.9}}), Contains("betas[1]") && Contains("-0.9"));
  CHECK_THROWS_WITH(AdamW(0.1, {.weight_decay = -1}), Contains("AdamW") && Contains("weight_decay"));
  CHECK_THROWS_WITH(Adamax(0.1, {.eps = -1}), Contains("Adamax"));
  CHECK_THROWS_WITH(Lion(0.1, {.betas = {0.9, 1.5}}), Contains("Lion") && Contains("1.5"));
  CHECK_THROWS_WITH(Lion(0.1, {.weight_decay = -1}), Contains("weight_decay"));
  CHECK_THROWS_WITH(Adam(0.1, {.state_dtype = DType::i32}), Contains("state_dtype") && Contains("i32"));
  CHECK_THROWS_AS(Adam(0.1, {.eps = std::numeric_limits<double>::quiet_NaN()}), InvalidArgument);
}

TEST_CASE("a MultiOptimizer gives each parameter to the first that takes it") {
  Model model;
  const auto slow = std::make_shared<SGD>(0.25), fast = std::make_shared<SGD>(1.0, SGDOptions{.momentum = 0.5});
  MultiOptimizer both({slow, fast}, {[](std::string_view name, ConstTensorView) { return name.ends_with("weight"); }});
  both.init(model.parameters());
  CHECK(names_of(both.state()) == std::vector<std::string>{"layer.bias.v"});
  both.apply_gradients(model.gradients(), model.parameters());
  CHECK(model.weight == std::vector<float>{0.75, 1.75, 2.75, 3.75});
  CHECK(model.bias == std::vector<float>{3, 4});
  both.apply_gradients({{"layer.weight", model.gradients().at("layer.weight")}}, model.parameters());
  CHECK(slow->step() == 2);
  CHECK(fast->step() == 2);
  CHECK(both.step() == 2);
  CHECK(both.state_bytes() == 2 * sizeof(float));
  CHECK(both.learning_rate() == 0.25);
  both.set_learning_rate(0.125);
  both.set_step(7);
  CHECK(fast->learning_rate() == 0.125);
  CHECK(fast->step() == 7);
}

TEST_CASE("a MultiOptimizer that cannot be is refused") {
  const auto optimizer = std::make_shared<SGD>(0.1);
  const auto all = [](std::string_view, ConstTensorView) { return true; };
  CHECK_THROWS_AS(MultiOptimizer({}, {}), InvalidArgument);
  CHECK_THROWS_AS(MultiOptimizer({nullptr}, {}), InvalidArgument);
  CHECK_THROWS_WITH(MultiOptimizer({optimizer}, {all}), Contains("1 filters"));
  CHECK_THROWS_AS(MultiOptimizer({optimizer, optimizer}, {nullptr}), InvalidArgument);
}

TEST_CASE("what constructors and steps throw can be had as a status") {
  CHECK(check_optimizer(0.1, AdamWOptions{}).ok());
  CHECK(check_optimizer(0.1, SGDOptions{.nesterov = true}).text() == "SGD: momentum is 0; it must be above 0 with nesterov");
  CHECK(check_optimizer(-1.0, LionOptions{}).text() == "Lion: the learning rate of step 0 is -1; it must be finite and not negative");
  CHECK(check_optimizer(0.1, RMSpropOptions{.state_dtype = DType::i8}).text() ==
        "RMSprop: state_dtype is i8; it must be f16, bf16, f32 or f64");
  CHECK_THROWS_WITH(RMSprop(0.1, {.state_dtype = DType::i8}), "RMSprop: state_dtype is i8; it must be f16, bf16, f32 or f64");
  Model model;
  Adagrad optimizer(0.1);
  CHECK_THAT(optimizer.try_apply_gradients({{"other", model.bias_gradient}}, model.parameters()).text(),
             Contains("'other' has no parameter"));
  CHECK_FALSE(optimizer.try_set_learning_rate(std::numeric_limits<double>::infinity()).ok());
  CHECK(optimizer.step() == 0);
  CHECK(optimizer.try_apply_gradients(model.gradients(), model.parameters()).ok());
  CHECK(optimizer.step() == 1);
}
