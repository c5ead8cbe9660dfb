#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace train_text {

using Bytes = std::vector<std::uint8_t>;

/// Returns an empty string if a text of `bytes` bytes is long enough for training and for evaluation, else one sentence that says why not.
std::string problem_of_text(std::size_t bytes, int context);

/// The training text, and its held-out end for evaluation.
class Corpus {
 public:
  /// Holds out the last tenth, but at least one window of `context` + 1 bytes. Throws `InputError` if the text is too short.
  Corpus(Bytes text, int context);

  std::span<const std::uint8_t> text() const { return text_; }
  std::span<const std::uint8_t> training() const { return text().first(training_bytes_); }
  std::span<const std::uint8_t> held_out() const { return text().subspan(training_bytes_); }

 private:
  Bytes text_;
  std::size_t training_bytes_;
};

/// Returns the entropy of the byte frequencies in nats per byte. It is the best loss without looking at context, which a model has to beat.
double unigram_entropy(std::span<const std::uint8_t> text);

inline constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325U;
/// The 64-bit FNV-1a hash, the same on every machine. `before` is the hash of the bytes that precede these.
std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t before = kHashOfNothing);
/// Returns 16 hexadecimal digits.
std::string in_hexadecimal(std::uint64_t hash);

}  // namespace train_text
