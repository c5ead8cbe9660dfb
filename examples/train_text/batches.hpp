#pragma once

#include <cstdint>
#include <vector>

#include "corpus.hpp"

namespace train_text {

/// `sequences` rows of `length` + 1 bytes. The model sees the first `length` bytes of each row and has to predict the last `length`.
struct Batch {
  int sequences = 0;
  int length = 0;
  std::vector<std::uint8_t> rows;

  std::uint8_t input(int sequence, int position) const { return rows[index(sequence, position)]; }
  std::uint8_t target(int sequence, int position) const { return rows[index(sequence, position + 1)]; }

 private:
  std::size_t index(int sequence, int position) const {
    return static_cast<std::size_t>(sequence) * static_cast<std::size_t>(length + 1) + static_cast<std::size_t>(position);
  }
};

/// A rank's contiguous part of `total` items.
struct Slice {
  int first = 0;
  int count = 0;
};

/// If `ranks` does not divide `total`, each of the first ranks gets one more than the others.
Slice slice_of(int total, int rank, int ranks);

/// Returns the sequences `slice` of training step `step`. Sequence k depends on (seed, step, k) alone, so a global batch is the same for
/// any number of ranks.
Batch training_batch(const Corpus& corpus, int context, std::uint64_t seed, std::uint64_t step, Slice slice);

/// Returns how many windows of the held-out text are evaluated: all that it has, but at most `most`.
int validation_windows(const Corpus& corpus, int context, int most);

/// Returns the part `slice` of `windows` windows of the held-out text. The windows are evenly spaced and always the same.
Batch validation_batch(const Corpus& corpus, int context, int windows, Slice slice);

}  // namespace train_text
