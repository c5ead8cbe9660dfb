#include "corpus.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "input_error.hpp"

namespace train_text {

std::string problem_of_text(std::size_t bytes, int context) {
  const std::size_t needed = 2 * (static_cast<std::size_t>(context) + 1);
  if (bytes >= needed) return {};
  return "the text has " + std::to_string(bytes) + " bytes, but a context of " + std::to_string(context) + " needs at least " +
         std::to_string(needed) + ": give a longer text or a smaller --context";
}

Corpus::Corpus(Bytes text, int context) : text_(std::move(text)) {
  if (const std::string problem = problem_of_text(text_.size(), context); !problem.empty()) throw InputError(problem);
  const std::size_t window = static_cast<std::size_t>(context) + 1;
  training_bytes_ = text_.size() - std::max(text_.size() / 10, window);
}

double unigram_entropy(std::span<const std::uint8_t> text) {
  std::array<std::size_t, 256> counts{};
  for (const std::uint8_t byte : text) ++counts[byte];
  double entropy = 0;
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(text.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t before) {
  std::uint64_t hash = before;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  return hash;
}

std::string in_hexadecimal(std::uint64_t hash) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15];
  return text;
}

}  // namespace train_text
