#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model.hpp"

namespace train_text {

struct SamplingOptions {
  int bytes = 240;
  double temperature = 0.7;  // below 1: likelier bytes oftener
  std::uint64_t seed = 1;
};

/// A text that a model writes, a few bytes at a time. It may have learned more in between.
class Writer {
 public:
  /// `prompt` is not empty. `options.bytes` does not count here.
  explicit Writer(std::string_view prompt, const SamplingOptions& options = {});
  /// Draws so many more bytes. The number of forward passes is that of the bytes whatever is drawn, so that ranks whose `memory` needs each
  /// other stay in step.
  void write(Transformer<float>& model, ModuleMemory<float>& memory, int bytes);
  /// Without the prompt.
  std::span<const std::uint8_t> written() const { return std::span(text_).subspan(prompt_bytes_); }

 private:
  SamplingOptions options_;
  std::size_t prompt_bytes_;
  std::vector<std::uint8_t> text_;
};

/// Continues `prompt`, which is not empty, by `options.bytes`; returns the continuation alone.
std::string generate(Transformer<float>& model, ModuleMemory<float>& memory, std::string_view prompt, const SamplingOptions& options = {});

}  // namespace train_text
