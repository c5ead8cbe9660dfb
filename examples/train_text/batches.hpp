#pragma once

#include <cstdint>
#include <vector>

#include "corpus.hpp"

namespace train_text {

/// `sequences` rows of `length` + 1 bytes. Of each row the model sees the first `length` bytes and is to predict the last `length`.
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

/// A rank's contiguous part of `total` things.
struct Slice {
  int first = 0;
  int count = 0;
};

/// Where `total` does not divide, the first ranks get one more.
Slice slice_of(int total, int rank, int ranks);

/// The sequences `slice` of training step `step`. Sequence k depends on (seed, step, k) alone, so a global batch is the same however many
/// ranks share it.
Batch training_batch(const Corpus& corpus, int context, std::uint64_t seed, std::uint64_t step, Slice slice);

/// How many windows of the held-out text are evaluated: as many as it has, at most `most`.
int validation_windows(const Corpus& corpus, int context, int most);

/// Of so many `windows` of the held-out text those of the `slice`: evenly spaced, always the same.
Batch validation_batch(const Corpus& corpus, int context, int windows, Slice slice);

}  // namespace train_text
