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

/// Continues `prompt`, which is not empty, with bytes drawn from the model; returns the continuation alone. The number of forward passes is
/// `options.bytes` whatever is drawn, so that ranks whose `memory` needs each other stay in step.
std::string generate(Transformer<float>& model, ModuleMemory<float>& memory, std::string_view prompt, const SamplingOptions& options = {});

}  // namespace train_text
