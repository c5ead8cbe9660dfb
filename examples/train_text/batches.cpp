#include "batches.hpp"

#include <algorithm>

#include "random.hpp"

namespace train_text {
namespace {

void append_window(std::span<const std::uint8_t> text, std::size_t start, Batch& batch) {
  const auto window = text.subspan(start, static_cast<std::size_t>(batch.length) + 1);
  batch.rows.insert(batch.rows.end(), window.begin(), window.end());
  ++batch.sequences;
}

}  // namespace

Slice slice_of(int total, int rank, int ranks) {
  const int share = total / ranks;
  const int left_over = total % ranks;
  return {rank * share + std::min(rank, left_over), share + (rank < left_over ? 1 : 0)};
}

Batch training_batch(const Corpus& corpus, int context, std::uint64_t seed, std::uint64_t step, Slice slice) {
  const auto text = corpus.training();
  const std::size_t starts = text.size() - static_cast<std::size_t>(context);
  Batch batch{.sequences = 0, .length = context, .rows = {}};
  for (int k = slice.first; k < slice.first + slice.count; ++k) {
    append_window(text, random_at(seed, step, static_cast<std::uint64_t>(k)) % starts, batch);
  }
  return batch;
}

int validation_windows(const Corpus& corpus, int context, int most) {
  const std::size_t whole = (corpus.held_out().size() - 1) / static_cast<std::size_t>(context);
  return static_cast<int>(std::min(whole, static_cast<std::size_t>(most)));
}

Batch validation_batch(const Corpus& corpus, int context, int windows, Slice slice) {
  const auto text = corpus.held_out();
  const std::size_t last_start = text.size() - static_cast<std::size_t>(context) - 1;
  const auto gaps = static_cast<std::size_t>(std::max(windows - 1, 1));
  Batch batch{.sequences = 0, .length = context, .rows = {}};
  for (int k = slice.first; k < slice.first + slice.count; ++k) append_window(text, static_cast<std::size_t>(k) * last_start / gaps, batch);
  return batch;
}

}  // namespace train_text
