#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace train_text {

using Bytes = std::vector<std::uint8_t>;

/// Empty where a text of so many bytes has room for training and for evaluation; else one sentence.
std::string problem_of_text(std::size_t bytes, int context);

/// The training text and its held-out tail.
class Corpus {
 public:
  /// Holds out the last tenth, at least one window of `context` + 1 bytes. Throws `InputError` with the text's problem, if it has
  /// one.
  Corpus(Bytes text, int context);

  std::span<const std::uint8_t> text() const { return text_; }
  std::span<const std::uint8_t> training() const { return text().first(training_bytes_); }
  std::span<const std::uint8_t> held_out() const { return text().subspan(training_bytes_); }

 private:
  Bytes text_;
  std::size_t training_bytes_;
};

/// Nats per byte of the best guess that knows how often each byte occurs and nothing else. A model has to beat it.
double unigram_entropy(std::span<const std::uint8_t> text);

inline constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325U;
/// FNV-1a, 64 bits: equal bytes, equal hash, on every machine. `before`: the hash of the bytes that came before these.
std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t before = kHashOfNothing);
/// 16 digits.
std::string in_hexadecimal(std::uint64_t hash);

}  // namespace train_text
