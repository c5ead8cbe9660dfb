#include "generate.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace train_text {
namespace {

std::uint8_t draw(const std::vector<float>& logits, double temperature, std::uint64_t random_bits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  double total = 0;
  for (const float logit : logits) total += weights.emplace_back(std::exp(static_cast<double>(logit - largest) / temperature));
  double left = unit_interval(random_bits) * total;
  for (std::size_t byte = 0; byte < weights.size(); ++byte) {
    left -= weights[byte];
    if (left < 0) return static_cast<std::uint8_t>(byte);
  }
  // Rounding can leave the sum just below the number drawn. The likeliest byte is taken then.
  return static_cast<std::uint8_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

Writer::Writer(std::string_view prompt, const SamplingOptions& options)
    : options_(options), prompt_bytes_(prompt.size()), text_(prompt.begin(), prompt.end()) {}

void Writer::write(Transformer<float>& model, ModuleMemory<float>& memory, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    const std::uint64_t random_bits = random_at(options_.seed, 0, written().size());
    text_.push_back(draw(model.next_byte_logits(text_, memory), options_.temperature, random_bits));
  }
}

std::string generate(Transformer<float>& model, ModuleMemory<float>& memory, std::string_view prompt, const SamplingOptions& options) {
  Writer writer(prompt, options);
  writer.write(model, memory, options.bytes);
  return {writer.written().begin(), writer.written().end()};
}

}  // namespace train_text
