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
  double temperature = 0.7;  // values below 1 favour likelier bytes
  std::uint64_t seed = 1;
};

/// Has a model write a text, a few bytes at a time. The model may be trained further between two calls.
class Writer {
 public:
  /// `prompt` must not be empty. `options.bytes` is ignored.
  explicit Writer(std::string_view prompt, const SamplingOptions& options = {});
  /// Draws `bytes` more bytes with one forward pass each, whatever is drawn. So ranks whose `memory` depends on the other ranks stay in
  /// step.
  void write(Transformer<float>& model, ModuleMemory<float>& memory, int bytes);
  /// Returns the text without the prompt.
  std::span<const std::uint8_t> written() const { return std::span(text_).subspan(prompt_bytes_); }

 private:
  SamplingOptions options_;
  std::size_t prompt_bytes_;
  std::vector<std::uint8_t> text_;
};

/// Continues `prompt`, which must not be empty, by `options.bytes` bytes. Returns the continuation without the prompt.
std::string generate(Transformer<float>& model, ModuleMemory<float>& memory, std::string_view prompt, const SamplingOptions& options = {});

}  // namespace train_text
