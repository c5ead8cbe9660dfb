#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <flat_parameters.hpp>
#include <functional>
#include <generate.hpp>
#include <input_error.hpp>
#include <model.hpp>
#include <random.hpp>
#include <string>

using namespace train_text;

namespace {

constexpr ModelShape kTiny{.layers = 2, .width = 8, .heads = 2, .context = 6};

/// A model with memory for all of its parameters and gradients.
template <class T>
struct LooseModel : ModuleMemory<T> {
  LooseModel(const ModelShape& shape, std::uint64_t seed) : model(shape, seed), memory(model.modules()) {}
  void begin_forward(std::size_t module) override { begun.push_back(module); }
  void begin_backward(std::size_t module) override { begun.push_back(module); }
  void gradients_ready(std::span<T> gradients) override { on_ready(gradients); }
  void end_backward(std::size_t module) override { ended.push_back(module); }

  double forward(const Batch& batch) { return model.forward(batch, *this); }
  void backward(const Batch& batch, double scale = 1) { model.backward(batch, *this, scale); }
  std::vector<T> next_byte_logits(std::span<const std::uint8_t> text) { return model.next_byte_logits(text, *this); }
  std::span<T> values() { return memory.values(); }
  std::span<T> gradients() { return memory.gradients(); }

  Transformer<T> model;
  FlatParameters<T> memory;
  std::function<void(std::span<T>)> on_ready = [](std::span<T>) {};
  std::vector<std::size_t> begun, ended;
};

Batch random_batch(int sequences, int length, std::uint64_t seed) {
  Batch batch{.sequences = sequences, .length = length, .rows = {}};
  for (int i = 0; i < sequences * (length + 1); ++i) {
    batch.rows.push_back(static_cast<std::uint8_t>('a' + random_at(seed, 0, static_cast<std::uint64_t>(i)) % 6));
  }
  return batch;
}

}  // namespace

TEST_CASE("backward agrees with central differences of forward, for every parameter") {
  LooseModel<double> model(kTiny, 11);
  const Batch batch = random_batch(3, kTiny.context, 5);
  // Gains of 1 and biases of 0 would hide mistakes, so all parameters are changed.
  const auto parameters = model.values();
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] += 0.2 * normal_at(99, 0, i);
  model.forward(batch);
  model.backward(batch);
  const std::vector<double> gradients(model.gradients().begin(), model.gradients().end());

  constexpr double kShift = 1e-5;
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double kept = parameters[i];
    parameters[i] = kept + kShift;
    const double above = model.forward(batch);
    parameters[i] = kept - kShift;
    const double below = model.forward(batch);
    parameters[i] = kept;
    worst = std::max(worst, std::abs(gradients[i] - (above - below) / (2 * kShift)));
    largest = std::max(largest, std::abs(gradients[i]));
  }
  CHECK(largest > 1e-2);
  CHECK(worst < 1e-8);
}

TEST_CASE("float and double agree") {
  LooseModel<double> exact(kTiny, 3);
  LooseModel<float> model(kTiny, 3);
  const Batch batch = random_batch(4, kTiny.context, 8);
  CHECK(model.forward(batch) == Approx(exact.forward(batch)).epsilon(1e-5));
  model.backward(batch);
  exact.backward(batch);
  for (std::size_t i = 0; i < exact.gradients().size(); ++i) {
    REQUIRE(static_cast<double>(model.gradients()[i]) == Approx(exact.gradients()[i]).epsilon(1e-3).margin(1e-6));
  }
}

TEST_CASE("every gradient is reported once, the output end first, and stays as it was reported") {
  LooseModel<float> model(kTiny, 3);
  const Batch batch = random_batch(2, kTiny.context, 8);
  model.forward(batch);
  std::vector<float> reported;
  const std::vector<GradientPart> parts = model.model.gradient_parts();
  std::size_t next_part = 0;
  const float* next_end = model.gradients().data() + model.gradients().size();
  model.on_ready = [&](std::span<float> part) {
    CHECK(part.data() + part.size() == next_end);
    next_end = part.data();
    REQUIRE(next_part < parts.size());
    CHECK(part.data() == model.gradients().data() + parts[next_part].first);
    CHECK(part.size() == parts[next_part].count);
    ++next_part;
    reported.insert(reported.begin(), part.begin(), part.end());
  };
  model.backward(batch);
  CHECK(next_end == model.gradients().data());
  CHECK(next_part == parts.size());
  CHECK(std::ranges::equal(reported, model.gradients()));
}

TEST_CASE("modules begin in order, backwards in the opposite one, and end there") {
  LooseModel<float> model(kTiny, 3);
  const Batch batch = random_batch(2, kTiny.context, 8);
  model.forward(batch);
  model.backward(batch);
  CHECK(model.begun == std::vector<std::size_t>{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(model.ended == std::vector<std::size_t>{3, 2, 1, 0});
}

TEST_CASE("a scaled backward pass gives scaled gradients") {
  LooseModel<double> model(kTiny, 3);
  const Batch batch = random_batch(2, kTiny.context, 8);
  model.forward(batch);
  model.backward(batch);
  const std::vector<double> plain(model.gradients().begin(), model.gradients().end());
  model.forward(batch);
  model.backward(batch, 0.75);
  for (std::size_t i = 0; i < plain.size(); ++i) REQUIRE(model.gradients()[i] == Approx(0.75 * plain[i]).epsilon(1e-9).margin(1e-15));
}

TEST_CASE("a model without memory says so") {
  Transformer<float> model(kTiny, 3);
  ModuleMemory<float> none;
  CHECK_THROWS_WITH(model.forward(random_batch(2, kTiny.context, 8), none), Catch::Contains("embedding"));
}

TEST_CASE("a token does not see what follows it") {
  LooseModel<double> model(kTiny, 3);
  const std::vector<std::uint8_t> text{'a', 'b', 'c', 'd', 'e', 'f'};
  for (std::size_t seen = 1; seen < text.size(); ++seen) {
    // The loss over `seen` tokens must not change when the tokens come in a longer row.
    Batch shorter{.sequences = 1, .length = static_cast<int>(seen), .rows = {text.begin(), text.begin() + static_cast<long>(seen) + 1}};
    Batch by_itself{.sequences = 1, .length = static_cast<int>(seen) - 1, .rows = {text.begin(), text.begin() + static_cast<long>(seen)}};
    const auto logits = model.next_byte_logits(std::span(text).first(seen));
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    const double last = std::log(total) - logits[text[seen]];
    const double before = seen > 1 ? model.forward(by_itself) * static_cast<double>(seen - 1) : 0.0;
    CHECK(model.forward(shorter) * static_cast<double>(seen) == Approx(before + last));
  }
}

TEST_CASE("an untrained model knows about as much as nothing") {
  LooseModel<float> model({.layers = 2, .width = 32, .heads = 4, .context = 16}, 1);
  CHECK(model.forward(random_batch(8, 16, 2)) == Approx(std::log(256.0)).margin(1.0));
}

TEST_CASE("a shape that does not fit is an error that names the numbers") {
  const auto problem = [](int layers, int width, int heads, int context) {
    return problem_of({.layers = layers, .width = width, .heads = heads, .context = context});
  };
  CHECK(problem(2, 32, 4, 8).empty());
  CHECK_THAT(problem(2, 30, 4, 8), Catch::Contains("30") && Catch::Contains("--heads 4"));
  CHECK_THAT(problem(0, 32, 4, 8), Catch::Contains("--layers"));
  CHECK_THAT(problem(1, 32, 0, 8), Catch::Contains("--heads"));
  CHECK_THAT(problem(1, 32, 4, 100'000), Catch::Contains("--context") && Catch::Contains("100000"));
  CHECK_THAT(problem(60'000, 60'000, 4, 8), Catch::Contains("smaller model"));
  CHECK_THROWS_AS(Transformer<float>({.layers = 1, .width = 32, .heads = 4, .context = -8}, 1), InputError);
}

TEST_CASE("generated text has the asked length, is repeatable, and outgrows the context") {
  LooseModel<float> model(kTiny, 3);
  const std::string text = generate(model.model, model, "ab", {.bytes = 20, .temperature = 1, .seed = 4});
  CHECK(text.size() == 20);
  CHECK(text == generate(model.model, model, "ab", {.bytes = 20, .temperature = 1, .seed = 4}));
  CHECK(text != generate(model.model, model, "ab", {.bytes = 20, .temperature = 1, .seed = 5}));
}
