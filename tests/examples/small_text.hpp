#pragma once

#include <catch2/catch.hpp>
#include <corpus.hpp>
#include <options.hpp>
#include <string_view>
#include <vector>

namespace train_text {

/// Returns options for a model that learns something in a second, and whose ranks are compared often.
inline Options small_options(Mode mode = Mode::data_parallel) {
  Options options;
  options.shape = {.layers = 2, .width = 16, .heads = 2, .context = 12};
  options.mode = mode;
  options.steps = 50;
  options.batch = 10;  // divides neither by 3 nor by 4
  options.seed = 21;
  options.learning_rate = 3e-3;
  options.check_every = 10;
  return options;
}

inline Corpus small_corpus(std::string_view verse = "one two three four, who is at the door; five six seven eight, open up the gate. ") {
  Bytes text;
  for (int i = 0; i < 30; ++i) text.insert(text.end(), verse.begin(), verse.end());
  return {std::move(text), small_options().shape.context};
}

/// Losses that differ in rounding alone, since the sums are in another order.
inline void check_same(const std::vector<double>& losses, const std::vector<double>& expected) {
  REQUIRE(losses.size() == expected.size());
  for (std::size_t step = 0; step < losses.size(); ++step) CHECK(losses[step] == Approx(expected[step]).epsilon(2e-5));
}

}  // namespace train_text
