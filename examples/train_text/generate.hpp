#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model.hpp"

namespace train_text {

struct SamplingOptions {
  int bytes = 240;
  double temperature = 0.7;  // below 1: likelier bytes oftener
  std::uint64_t seed = 1;
};

/// Continues `prompt`, which is not empty, with bytes drawn from the model; returns the continuation alone.
std::string generate(Transformer<float>& model, std::string_view prompt, const SamplingOptions& options = {});

}  // namespace train_text
