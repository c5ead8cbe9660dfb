#include "generate.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace train_text {
namespace {

std::uint8_t draw(const std::vector<float>& logits, double temperature, std::uint64_t random_bits) {
  const float largest = *std::ranges::max_element(logits);
  std::vector<double> weights;
  double total = 0;
  for (const float logit : logits) total += weights.emplace_back(std::exp(static_cast<double>(logit - largest) / temperature));
  double left = unit_interval(random_bits) * total;
  for (std::size_t byte = 0; byte < weights.size(); ++byte) {
    left -= weights[byte];
    if (left < 0) return static_cast<std::uint8_t>(byte);
  }
  // Rounding can leave a little over: then the likeliest byte.
  return static_cast<std::uint8_t>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

std::string generate(Transformer<float>& model, ModuleMemory<float>& memory, std::string_view prompt, const SamplingOptions& options) {
  std::vector<std::uint8_t> text(prompt.begin(), prompt.end());
  for (int i = 0; i < options.bytes; ++i) {
    const std::uint64_t random_bits = random_at(options.seed, 0, static_cast<std::uint64_t>(i));
    text.push_back(draw(model.next_byte_logits(text, memory), options.temperature, random_bits));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

}  // namespace train_text
